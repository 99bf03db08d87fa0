package tests

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// pageLen is how much a page has, of records or of events.
const pageLen = 200

// BenchmarkReadsBesideLoad measures how long reads take beside the full load of the table of throughput, and without
// it: one record by its id, a range of 200 records, and a page of 200 events of a workspace. The store has 300 events
// of each workspace before (25 with -short, with pages of as many); they are in memory.
func BenchmarkReadsBesideLoad(b *testing.B) {
	each, page := 300, pageLen
	if testing.Short() {
		each, page = 25, 8
	}
	a := partition.Application{Descriptor: shop(fullLoadPartitions)}
	d := deploy(b, a, openBolt(b, b.TempDir(), a.Descriptor, bolt.Options{}), partition.Options{})
	filling := startFullLoad(d.app, int64(each*fullLoadWorkspaces))
	filling.callers.Wait()
	check(b, filling.end())
	for _, loaded := range []bool{false, true} {
		for _, read := range readsOf(b, d.app.Reader(), page) {
			b.Run(fmt.Sprintf("loaded=%v/%s", loaded, read.name), func(b *testing.B) {
				if !loaded {
					measureReads(b, read.do)
					return
				}
				load, begin := startFullLoad(d.app, math.MaxInt64), time.Now()
				measureReads(b, read.do)
				b.ReportMetric(float64(load.appended.Load())/time.Since(begin).Seconds(), "appends/s")
				check(b, load.end())
			})
		}
	}
	d.stop(b)
}

type read struct {
	name string
	do   func()
}

// readsOf are reads of random workspaces.
func readsOf(b *testing.B, r *partition.Reader, page int) []read {
	random := rand.New(rand.NewPCG(1, 2))
	workspace := func() messages.WSID { return messages.WSID(random.IntN(fullLoadWorkspaces)) }
	first := func() messages.Number { return messages.InitialCRecordID + messages.Number(random.IntN(page/2)) }
	return []read{
		{"record", func() {
			must(r.Record(b.Context(), workspace(), messages.RecordID{Seq: messages.SeqCRecordID, Number: first()}))(b)
		}},
		{fmt.Sprintf("records=%d", page), func() {
			in := storage.RecordRange{Seq: messages.SeqCRecordID, From: first()}
			in.To = in.From + messages.Number(page-1)
			n := 0
			for _, err := range r.Records(b.Context(), workspace(), in) {
				check(b, err)
				n++
			}
			wantPage(b, n, page)
		}},
		{fmt.Sprintf("events=%d", page), func() {
			wantPage(b, len(must(r.WLogPage(b.Context(), workspace(), 1, page))(b)), page)
		}},
	}
}

func wantPage(b *testing.B, got, want int) {
	b.Helper()
	if got != want {
		b.Fatalf("got %d of a page, want %d", got, want)
	}
}

// measureReads reports how long half of the reads, and nearly all of them, take at most.
func measureReads(b *testing.B, read func()) {
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		read()
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(1000*quantile(took, 0.5), "p50-us")
	b.ReportMetric(1000*quantile(took, 0.99), "p99-us")
}
