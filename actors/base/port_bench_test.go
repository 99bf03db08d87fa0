package base_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// answering is an actor that does nothing but answer.
func answering(c actor.Context) {
	if q, ok := c.Message().(*query); ok {
		c.Respond(q)
	}
}

// BenchmarkRoundTripPort is a question and its answer, with everything of ours.
func BenchmarkRoundTripPort(b *testing.B) {
	h := newHouse(b)
	pid := h.spawn(b, h.mailbox(1024), receive(answering))
	question := &query{}
	ask := func(b *testing.B, ctx context.Context) {
		if _, err := h.ports.Ask(ctx, pid, question, nil); err != nil {
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
	pid := system.Root.Spawn(actor.PropsFromProducer(receive(answering)))
	b.Cleanup(func() { system.Root.Stop(pid) })
	question := &query{}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := system.Root.RequestFuture(pid, question, time.Minute).Result(); err != nil {
			b.Error(err)
		}
	}
}
