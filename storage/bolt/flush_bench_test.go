package bolt

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/numbers"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
)

// BenchmarkFlushTogether flushes 4,096 and 8,192 events of each of 16 partitions together, of random ones of 10,000
// workspaces, with two numbers and two records each. Who flushes gives the numbers.
func BenchmarkFlushTogether(b *testing.B) {
	for _, events := range []int{4096, 8192} {
		b.Run(fmt.Sprintf("events=%d", events), func(b *testing.B) { benchFlushTogether(b, events) })
	}
}

func benchFlushTogether(b *testing.B, events int) {
	s := openBench(b, b.TempDir(), togetherPartitions, Options{})
	defer closeStore(b, s)
	var all [togetherPartitions]*togetherAppender
	for i := range all {
		a := newBenchAppender(b, s, messages.PartitionID(i))
		all[i] = &togetherAppender{a, rand.New(rand.NewPCG(1, uint64(i))), make(map[messages.WSID]messages.WLogOffset)}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		var group []*flushRequest
		for _, a := range all {
			group = append(group, a.appendMany(b, events))
		}
		b.StartTimer()
		done := make(chan error, len(group))
		for _, r := range group {
			go func() {
				done <- queue.HandOver(context.Background(), s.flushes, r, &r.Ticket, s.closing, s.flushed)
			}()
		}
		for range group {
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*togetherPartitions*events)/b.Elapsed().Seconds(), "events/s")
}

const (
	togetherPartitions = 16
	togetherWorkspaces = 10_000 / togetherPartitions
)

type togetherAppender struct {
	*benchAppender
	rnd   *rand.Rand
	wlogs map[messages.WSID]messages.WLogOffset
}

// appendMany appends what is flushed next, and returns the flush of it.
func (a *togetherAppender) appendMany(b *testing.B, n int) *flushRequest {
	const batch = 256
	p := &a.s.partitions[a.id]
	from := p.checkpoint
	changed := make(map[messages.WSID]storage.WorkspaceNumbers)
	for range n / batch {
		events := storage.Batch{Partition: a.id, Epoch: a.epoch}
		for range batch {
			events.Events = append(events.Events, a.event(changed))
		}
		if err := a.s.Append(context.Background(), events); err != nil {
			b.Fatal(err)
		}
	}
	f := storage.Flush{Partition: a.id, Checkpoint: a.next, Numbers: slices.Collect(maps.Values(changed))}
	return &flushRequest{Ticket: queue.NewTicket(), partition: p, epoch: p.epoch, from: from, to: p.last + 1, given: numbers.Give(&f)}
}

func (a *togetherAppender) event(changed map[messages.WSID]storage.WorkspaceNumbers) messages.Event {
	ws := messages.WSID(togetherPartitions*a.rnd.Uint64N(togetherWorkspaces) + uint64(a.id))
	a.wlogs[ws]++
	e := benchEvent(a.id, a.epoch, a.next, ws, a.wlogs[ws])
	a.next++
	second := e.Records[0]
	second.ID.Number = messages.InitialCRecordID + messages.Number(2*a.wlogs[ws])
	e.Records[0].ID.Number = second.ID.Number - 1
	e.Records = append(e.Records, second)
	e.Numbers = nil
	for _, r := range e.Records {
		e.Numbers = append(e.Numbers, messages.SequenceNumber{Seq: r.ID.Seq, Number: r.ID.Number})
	}
	w := changed[ws]
	w.Workspace = ws
	if e.WLogOffset == 1 {
		w.Kind = testKind
	}
	w.Numbers = []messages.SequenceNumber{{Seq: messages.SeqWLogOffset, Number: messages.Number(e.WLogOffset)}, e.Numbers[1]}
	changed[ws] = w
	return e
}
