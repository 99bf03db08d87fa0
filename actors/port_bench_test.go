package actors

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// answering is an actor that does nothing but answer.
func answering() actor.Actor {
	return actor.ReceiveFunc(func(c actor.Context) {
		if r, ok := c.Message().(*request); ok {
			c.Respond(r)
		}
	})
}

// BenchmarkRoundTripPort is a question and its answer with everything of ours. The
// request lane and ctx are those of a caller in earnest.
func BenchmarkRoundTripPort(b *testing.B) {
	system, dispatcher := newSystem(), NewDispatcher()
	ports := NewPorts(system)
	b.Cleanup(dispatcher.Close)
	b.Cleanup(ports.Close)
	pid := system.Root.Spawn(actor.PropsFromProducer(answering,
		actor.WithDispatcher(dispatcher),
		actor.WithMailbox(func() actor.Mailbox {
			return NewMailbox(MailboxConfig{Requests: 1024, IsRequest: isRequest})
		})))
	b.Cleanup(func() { system.Root.Stop(pid) })
	question := &request{}
	ask := func(b *testing.B, ctx context.Context) {
		if _, err := ports.Ask(ctx, pid, question, nil); err != nil {
			b.Error(err)
		}
	}
	b.Run("background", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ask(b, context.Background())
		}
	})
	b.Run("cancellable", func(b *testing.B) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		b.ReportAllocs()
		for b.Loop() {
			ask(b, ctx)
		}
	})
	b.Run("64 callers", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				ask(b, context.Background())
			}
		})
	})
}

// BenchmarkRoundTripFuture is the same with what the actor system has.
func BenchmarkRoundTripFuture(b *testing.B) {
	system := newSystem()
	pid := system.Root.Spawn(actor.PropsFromProducer(answering))
	b.Cleanup(func() { system.Root.Stop(pid) })
	question := &request{}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := system.Root.RequestFuture(pid, question, time.Minute).Result(); err != nil {
			b.Error(err)
		}
	}
}
