package tests

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// Append takes everything and keeps nothing.
func (*nowhere) Append(context.Context, storage.Batch) error { return nil }

func (*nowhere) Submit(_ storage.Batch, done func(error)) func(context.Context) error {
	done(nil)
	return nil
}

// BenchmarkAppend puts one append with three numbers, storage out of the way, beside
// the bare round trip of the same run, with the same number of callers. Bar: at most 2
// round trips, in turn.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d/roundtrip=port", callers), func(b *testing.B) { byCallers(b, callers, roundTrips(b)) })
		b.Run(fmt.Sprintf("callers=%d/append", callers), func(b *testing.B) { byCallers(b, callers, appends(b)) })
	}
	b.Run("callers=1/in-turn", func(b *testing.B) { inTurn(b, appends(b)) })
}

// inTurn measures f in bare round trips, a slice of each in turn, so that both have the
// same machine. A slice is long enough for most of f's garbage to be collected in it; the
// little that the round trips leave is collected in both.
func inTurn(b *testing.B, f func(caller int) error) {
	const slice = 20_000
	trip := roundTrips(b)
	var bare, ours time.Duration
	for b.Loop() {
		bare += timed(b, slice, trip)
		ours += timed(b, slice, f)
	}
	b.ReportMetric(float64(ours)/float64(bare), "round-trips")
	b.ReportMetric(0, "ns/op") // of both
}

func timed(b *testing.B, n int, f func(caller int) error) time.Duration {
	before := time.Now()
	for range n {
		if err := f(0); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(before)
}

// byCallers runs f b.N times, by so many goroutines.
func byCallers(b *testing.B, callers int, f func(caller int) error) {
	b.ReportAllocs()
	if callers == 1 {
		for b.Loop() {
			if err := f(0); err != nil {
				b.Fatal(err)
			}
		}
		return
	}
	var next atomic.Int64
	b.SetParallelism(callers / runtime.GOMAXPROCS(0))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		caller := int(next.Add(1)) - 1
		for pb.Next() {
			if err := f(caller); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// roundTrips returns a question to an actor that only answers, with a partition's
// mailbox, dispatcher and reply port.
func roundTrips(b *testing.B) func(int) error {
	dispatcher := actors.NewDispatcher()
	b.Cleanup(dispatcher.Close)
	mailbox := actors.NewMailbox(actors.MailboxConfig{
		Requests: 1024, IsRequest: func(any) bool { return false }, System: system,
	})
	pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return answerer{} },
		actor.WithMailbox(func() actor.Mailbox { return mailbox }), actor.WithDispatcher(dispatcher)))
	b.Cleanup(func() { system.Root.Stop(pid) })
	ports := actors.NewPorts(system)
	b.Cleanup(ports.Close)
	ctx := context.Background()
	return func(int) error {
		_, err := ports.Ask(ctx, pid, &messages.Start{}, nil)
		return err
	}
}

func appends(b *testing.B) func(caller int) error { return appendsTo(withoutStorage(b)) }

func appendsTo(sequencer *actors.Sequencer) func(caller int) error {
	ctx := context.Background()
	draft := messages.Draft{Wanted: []messages.Wanted{{Seq: seqInvoice, Count: 3}}, Body: make([]byte, 300)}
	return func(caller int) error {
		_, err := sequencer.Append(ctx, partition.AppendTo{Workspace: messages.WSID(caller), Kind: kindShop}, draft)
		return err
	}
}
