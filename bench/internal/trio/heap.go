package trio

import (
	"context"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// heapPeriod is how often the heap is looked at.
const heapPeriod = 20 * time.Millisecond

// heap is how large this process's heap was: what was in use when it was collected, and all, with garbage.
type heap struct{ live, all atomic.Uint64 }

// watchHeap looks at the heap until ctx ends.
func watchHeap(ctx context.Context) *heap {
	h := new(heap)
	go func() {
		ticker := time.NewTicker(heapPeriod)
		defer ticker.Stop()
		samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
		for ctx.Err() == nil {
			metrics.Read(samples)
			raise(&h.live, samples[0].Value.Uint64())
			raise(&h.all, samples[1].Value.Uint64())
			<-ticker.C
		}
	}()
	return h
}

// raise is called by one goroutine.
func raise(largest *atomic.Uint64, now uint64) {
	if now > largest.Load() {
		largest.Store(now)
	}
}

// peaks returns the largest heap since it was asked for last.
func (h *heap) peaks() Peaks { return Peaks{Live: h.live.Swap(0), All: h.all.Swap(0)} }

// Peaks are the largest heaps of some time, in bytes: what was in use, and all, with garbage.
type Peaks struct{ Live, All uint64 }
