package trio

import (
	"context"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// heapPeriod is how often the heap is looked at.
const heapPeriod = 20 * time.Millisecond

// heap is how large this process's heap was, with what is not collected yet.
type heap struct{ largest atomic.Uint64 }

func watchHeap(ctx context.Context) *heap {
	h := new(heap)
	go func() {
		ticker := time.NewTicker(heapPeriod)
		defer ticker.Stop()
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for ctx.Err() == nil {
			metrics.Read(sample)
			if now := sample[0].Value.Uint64(); now > h.largest.Load() {
				h.largest.Store(now)
			}
			<-ticker.C
		}
	}()
	return h
}

// peak returns the largest heap since it was asked for last.
func (h *heap) peak() uint64 { return h.largest.Swap(0) }
