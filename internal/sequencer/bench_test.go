package sequencer

import (
	"fmt"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// BenchmarkTransaction is Start, Next and Flush on one cached workspace. What it
// allocates are the replies and, at each threshold, a flush.
func BenchmarkTransaction(b *testing.B) {
	w := up(b, messages.Settings{})
	w.event(1, kindWide, seqPlain)
	w.quiesce()
	start := &messages.Start{Workspace: 1, Kind: kindWide}
	next, flush := &messages.Next{Seq: seqPlain}, &messages.Flush{}
	written := &messages.Written{Generation: w.core.generation}
	b.ReportAllocs()
	for b.Loop() {
		w.now++
		fx := w.core.Step("owner", start, w.now)
		token := fx.Replies[0].Message.(*messages.Started).Token
		next.Token, flush.Token = token, token
		w.core.Step("owner", next, w.now)
		fx = w.core.Step("owner", flush, w.now)
		if fx.Flusher != nil {
			written.Checkpoint = fx.Flusher.Checkpoint
			w.core.Step(nil, written, w.now)
		}
	}
}

// BenchmarkAppend is one Append on one cached workspace, alone in its batch, and in
// a full one. What it allocates are the reply, its numbers and the event's records,
// and, at each threshold, a flush.
func BenchmarkAppend(b *testing.B) {
	b.Run("alone", func(b *testing.B) { benchmarkAppend(b, 1) })
	b.Run("batch of 256", func(b *testing.B) { benchmarkAppend(b, 256) })
}

// BenchmarkAppendPeriods is the same with one sequence, of a kind that has no other, which restarts each day or never.
func BenchmarkAppendPeriods(b *testing.B) {
	for _, batch := range []int{1, 256} {
		for _, every := range []calendar.Unit{calendar.Never, calendar.Day} {
			b.Run(fmt.Sprintf("%v/%d", every, batch), func(b *testing.B) {
				invoice := messages.Sequence{ID: seqPlain, Name: "invoice", Initial: 1}
				if every != calendar.Never {
					invoice.Restart = messages.Restart{Rule: calendar.Rule{Every: every}, Zone: "Europe/Zurich", Keep: 2}
				}
				w := newWorld(b, messages.Settings{})
				w.config.Descriptor.Kinds[0].Sequences = []messages.Sequence{invoice}
				w.begin()
				w.settle()
				benchmarkAppendTo(b, w, batch)
			})
		}
	}
}

func benchmarkAppend(b *testing.B, batch int) {
	benchmarkAppendTo(b, up(b, messages.Settings{}), batch)
}

func benchmarkAppendTo(b *testing.B, w *world, batch int) {
	w.event(1, kindWide, seqPlain)
	w.quiesce()
	m := &messages.Append{Workspace: 1, Kind: kindWide, Drafts: []messages.Draft{{
		Wanted:  []messages.Wanted{{Seq: messages.SeqCRecordID, Count: 2}, {Seq: seqPlain}},
		Body:    make([]byte, 100),
		Records: []messages.DraftRecord{{Number: 0, New: true, Data: make([]byte, 50)}, {Number: 1, New: true}},
	}}}
	answer := &messages.EventsWritten{Generation: w.core.generation}
	flushed := &messages.Written{Generation: w.core.generation}
	b.ReportAllocs()
	appended := 0
	step := func(from Requester, m messages.PartitionMessage) {
		fx := w.core.Step(from, m, w.now)
		appended += len(fx.Replies)
		if fx.Appender != nil {
			answer.First = fx.Appender.Events[0].PLogOffset
		}
		if fx.Flusher != nil {
			flushed.Checkpoint = fx.Flusher.Checkpoint
			w.core.Step(nil, flushed, w.now)
		}
	}
	for b.Loop() {
		w.now++
		step("owner", m)
		if n := w.core.inFlight.events; n == batch {
			// What the last answer has let through, and what has gathered behind it.
			step(nil, answer)
		}
	}
	if appended+2*batch < b.N {
		b.Fatalf("got %d of %d", appended, b.N)
	}
}

// BenchmarkReplay merges a tail of 10,000 workspaces, two numbers an event.
func BenchmarkReplay(b *testing.B) {
	const workspaces, piece, pieces = 10_000, 4096, 25
	tail := make([][]messages.Numbering, pieces)
	offset := messages.PLogOffset(0)
	for p := range tail {
		for range piece {
			ws, round := uint64(offset)%workspaces, messages.Number(offset)/workspaces
			offset++
			tail[p] = append(tail[p], messages.Numbering{
				Epoch: 1, PLogOffset: offset, Workspace: messages.WSID(2*ws + 1), WorkspaceKind: kindWide,
				WLogOffset: messages.WLogOffset(round + 1), RegisteredAt: 1,
				Numbers: []messages.SequenceNumber{
					{Seq: seqPlain, Number: round + 1},
					{Seq: messages.SeqCRecordID, Number: messages.InitialCRecordID + round},
				},
			})
		}
	}
	settings := messages.Settings{BusyLimit: 10 * workspaces}.WithDefaults()
	b.ReportAllocs()
	for b.Loop() {
		c := New(Config{Partition: testPartition, Descriptor: testDescriptor(), Settings: settings, CacheNumbers: 1000})
		c.Begin(1)
		c.Step(nil, &messages.Taken{Generation: 1, Register: messages.Register{Epoch: 2, Last: offset, Checkpoint: 1}}, 1)
		for p := range tail {
			c.Step(nil, &messages.Replayed{Generation: 1, Events: tail[p]}, 1)
		}
		if c.state != messages.StateNormal {
			b.Fatalf("got %+v", c.Status())
		}
	}
	b.ReportMetric(float64(b.N)*float64(offset)/b.Elapsed().Seconds(), "events/s")
}
