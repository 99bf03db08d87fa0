package queue

import (
	"context"
	"sync"

	"github.com/partita-go/partita/storage"
)

// Door lets requests in that nobody waits for. Those that are inside when their server ends are answered by it, so that
// none is forgotten. The zero value is open. It is safe for concurrent use.
type Door[R any] struct {
	mu   sync.RWMutex
	shut bool
}

// LetIn queues a request if there is room.
func (d *Door[R]) LetIn(queue chan<- R, r R) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.shut {
		return false
	}
	select {
	case queue <- r:
		return true
	default:
		return false
	}
}

// Wait queues a request when there is room. It returns ErrClosed once the store is closing, and the context's error.
func (d *Door[R]) Wait(ctx context.Context, queue chan<- R, r R, closing <-chan struct{}) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.shut {
		return storage.ErrClosed
	}
	select {
	case queue <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-closing:
		return storage.ErrClosed
	}
}

// Close lets refuse answer those who came in while the server ended, or will never be served.
func (d *Door[R]) Close(queue <-chan R, refuse func(R)) {
	d.mu.Lock()
	d.shut = true
	d.mu.Unlock()
	ServeRest(queue, func(r R) bool {
		refuse(r)
		return true
	})
}
