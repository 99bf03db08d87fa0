package base_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors/base"
)

// BenchmarkDispatcher schedules a function that uses 4 KB of stack, as an actor
// may, and waits for it.
func BenchmarkDispatcher(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		d := base.NewDispatcher()
		defer d.Close()
		benchmarkDispatcher(b, d)
	})
	b.Run("default", func(b *testing.B) { benchmarkDispatcher(b, actor.NewDefaultDispatcher(300)) })
}

func benchmarkDispatcher(b *testing.B, d actor.Dispatcher) {
	done := make(chan struct{}, 1)
	work := func() {
		deep(8)
		done <- struct{}{}
	}
	b.ReportAllocs()
	for b.Loop() {
		d.Schedule(work)
		<-done
	}
}

// deep needs half a KB of stack a level.
//
//go:noinline
func deep(levels int) byte {
	var frame [512]byte
	if levels > 0 {
		frame[levels] = deep(levels - 1)
	}
	return frame[0]
}
