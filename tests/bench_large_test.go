package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// BenchmarkBesideLarge measures how long small appends take while callers of other
// partitions append groups of 16 MiB, as large as they may be by default. Each row is
// measured once, for some seconds.
func BenchmarkBesideLarge(b *testing.B) {
	for _, large := range []int{0, 1, 4, 8} {
		b.Run(fmt.Sprintf("large=%d", large), func(b *testing.B) {
			for b.Loop() {
				besideLarge(b, large)
			}
		})
	}
}

const (
	besideTime  = 8 * time.Second
	besideSmall = 8
	// A group is this many drafts of bodies of about 1 MiB.
	besideDrafts = 16
	besideBody   = 1<<20 - 512
)

// besideLarge has callers of small appends and of large groups, each on a partition of his own.
func besideLarge(b *testing.B, large int) {
	b.StopTimer()
	d := shop(uint32(besideSmall + large))
	store := must(bolt.Open(limit(b), b.TempDir(), d, bolt.Options{}))(b)
	parts := partition.NewAppParts(system, partition.Options{})
	app := must(parts.Deploy(limit(b), partition.Application{Descriptor: d}, store))(b)
	check(b, app.Ready(limit(b)))
	ctx, cancel := context.WithTimeout(context.Background(), besideTime)
	defer cancel()
	var groups atomic.Int64
	took := make([][]time.Duration, besideSmall)
	group := make([]messages.Draft, besideDrafts)
	body := make([]byte, besideBody)
	for i := range group {
		group[i].Body = body
	}
	b.StartTimer()
	var all sync.WaitGroup
	for n := range large {
		all.Go(func() {
			to := partition.AppendTo{Workspace: workspaceIn(d, besideSmall+n), Kind: kindShop, Wait: true}
			for untilEnd(ctx, b, func() error {
				_, err := must(app.SequencerOf(to.Workspace))(b).AppendAll(ctx, to, group)
				return err
			}) {
				groups.Add(1)
			}
		})
	}
	for n := range besideSmall {
		all.Go(func() {
			to := partition.AppendTo{Workspace: workspaceIn(d, n), Kind: kindShop, Wait: true}
			draft := messages.Draft{Wanted: []messages.Wanted{{Seq: seqInvoice}}, Body: make([]byte, 300)}
			for begun := time.Now(); untilEnd(ctx, b, func() error {
				_, err := must(app.SequencerOf(to.Workspace))(b).Append(ctx, to, draft)
				return err
			}); begun = time.Now() {
				took[n] = append(took[n], time.Since(begun))
			}
		})
	}
	all.Wait()
	b.StopTimer()
	sorted := slices.Sorted(slices.Values(slices.Concat(took...)))
	for name, at := range map[string]int{"p50-ms": len(sorted) / 2, "p99-ms": len(sorted) * 99 / 100, "max-ms": len(sorted) - 1} {
		b.ReportMetric(float64(sorted[at].Microseconds())/1000, name)
	}
	b.ReportMetric(float64(len(sorted))/besideTime.Seconds(), "small/s")
	b.ReportMetric(float64(groups.Load()*besideDrafts)/besideTime.Seconds(), "large-MiB/s")
	b.ReportMetric(0, "ns/op") // it is the time of the row
	check(b, parts.Close(limit(b)))
	check(b, store.Close(limit(b)))
	b.StartTimer()
}

// untilEnd does something again and again, and reports whether it was done: it ends with the
// context. Who is told to come back later does so at once.
func untilEnd(ctx context.Context, b *testing.B, do func() error) bool {
	for ctx.Err() == nil {
		switch err := do(); {
		case err == nil:
			return true
		case ctx.Err() == nil && !errors.Is(err, partition.ErrBusy):
			b.Error(err)
			return false
		}
	}
	return false
}

// workspaceIn returns a workspace of a partition.
func workspaceIn(d messages.Descriptor, p int) messages.WSID {
	ws := messages.WSID(1)
	for messages.PartitionOf(ws, d.Partitions) != messages.PartitionID(p) {
		ws++
	}
	return ws
}
