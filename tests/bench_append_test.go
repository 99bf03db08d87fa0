package tests

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// Append takes everything and keeps nothing.
func (*nowhere) Append(context.Context, storage.Batch) error { return nil }

func (*nowhere) SubmitWaiting(_ context.Context, _ storage.Batch, done func(error)) error {
	done(nil)
	return nil
}

func (*nowhere) Submit(_ storage.Batch, done func(error)) bool {
	done(nil)
	return true
}

// BenchmarkAppend puts one append with three numbers, storage out of the way,
// beside the bare round trip of the same run, with the same number of callers. Bar:
// at most 2 round trips.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d/roundtrip=port", callers), func(b *testing.B) { benchmarkPorts(b, callers) })
		b.Run(fmt.Sprintf("callers=%d/append", callers), func(b *testing.B) { benchmarkAppends(b, callers) })
	}
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

func benchmarkPorts(b *testing.B, callers int) {
	dispatcher := actors.NewDispatcher()
	defer dispatcher.Close()
	mailbox := actors.NewMailbox(actors.MailboxConfig{
		Requests: 1024, IsRequest: func(any) bool { return false }, System: system,
	})
	pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return answerer{} },
		actor.WithMailbox(func() actor.Mailbox { return mailbox }), actor.WithDispatcher(dispatcher)))
	defer system.Root.Stop(pid)
	ports := actors.NewPorts(system)
	defer ports.Close()
	ctx := context.Background()
	byCallers(b, callers, func(int) error {
		_, err := ports.Ask(ctx, pid, &messages.Start{}, nil)
		return err
	})
}

func benchmarkAppends(b *testing.B, callers int) {
	descriptor := shop(1)
	store := &nowhere{descriptor: descriptor.Normalized()}
	parts := partition.NewAppParts(system, partition.Options{})
	app := must(parts.Deploy(limit(b), partition.Application{Descriptor: descriptor}, store))(b)
	defer func() { check(b, parts.Close(limit(b))) }()
	check(b, app.Ready(limit(b)))
	sequencer := must(app.Sequencer(0))(b)
	ctx := context.Background()
	draft := messages.Draft{Wanted: []messages.Wanted{{Seq: seqInvoice, Count: 3}}, Body: make([]byte, 300)}
	byCallers(b, callers, func(caller int) error {
		_, err := sequencer.Append(ctx, partition.AppendTo{Workspace: messages.WSID(caller), Kind: kindShop}, draft)
		return err
	})
}
