package transfer

import (
	"iter"
	"runtime"
	"sync"
)

// ordered lets several goroutines do work on what in yields, and yields the results in their order. in runs in a
// goroutine of its own, which ends with the loop: it must not wait for ever.
func ordered[In, Out any](in iter.Seq[In], work func(In) Out) iter.Seq[Out] {
	return func(yield func(Out) bool) {
		queue, stop := make(chan chan Out, runtime.GOMAXPROCS(0)), make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() {
			defer close(queue)
			for v := range in {
				result := make(chan Out, 1)
				select {
				case queue <- result:
				case <-stop:
					return
				}
				running.Go(func() { result <- work(v) })
			}
		})
		defer running.Wait()
		defer close(stop)
		for result := range queue {
			if !yield(<-result) {
				return
			}
		}
	}
}

// Limits of a batch.
const (
	batchEvents = 512
	batchBytes  = 1 << 20
)
