package partition

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"sync/atomic"
)

// Watch yields the status of each actor, as [App.Actors] has them, and then each one that has changed, until every
// partition has ended. When ctx ends first, it yields the error of ctx at last. Whoever is slow to take them misses
// changes that another one has followed, and never the last one. No actor waits for whoever watches it, or does more
// the more they are.
func (a *App) Watch(ctx context.Context) iter.Seq2[ActorStatus, error] {
	return func(yield func(ActorStatus, error) bool) {
		w := a.Watcher()
		for {
			news, err := w.Next(ctx)
			for i := range news {
				if !yield(news[i], nil) {
					return
				}
			}
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(ActorStatus{}, err)
				return
			}
		}
	}
}

// changes wakes those who wait for a change. Who makes one does not wait for them, however many they are.
type changes struct {
	// awaited says that somebody waits for next, telling that somebody is about to close it.
	awaited, telling atomic.Bool
	mu               sync.Mutex
	next             chan struct{}
}

// await returns what is closed after the next change.
func (c *changes) await() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	c.awaited.Store(true)
	return c.next
}

// tell says that something has changed.
func (c *changes) tell() {
	if c.awaited.Load() && c.telling.CompareAndSwap(false, true) {
		go c.wake()
	}
}

func (c *changes) wake() {
	c.telling.Store(false) // what changes from now on wakes once more
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.awaited.Swap(false) {
		close(c.next)
		c.next = nil
	}
}
