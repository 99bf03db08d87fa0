// Package watch wakes those who wait for a log to grow.
package watch

import (
	"context"
	"sync"
	"sync/atomic"
)

// Log is what a topic is about.
type Log uint8

// The kinds of topics.
const (
	// Any is every log of a store; its ID is 0.
	Any Log = iota
	// Partition is the log of a partition.
	Partition
	// Workspace is the log of a workspace.
	Workspace
)

// Topic is what somebody waits for.
type Topic struct {
	Log Log
	ID  uint64
}

// Board is where those who wait for a topic meet those who have news of it. The zero
// board is ready to use. It is safe for concurrent use.
type Board struct {
	// waiting spares those who have news the lock when nobody waits. It grows before a
	// waiter looks whether what it waits for is there, and is read after that was made
	// so: one of the two sees the other.
	waiting atomic.Int64

	mu    sync.Mutex
	bells map[Topic]*bell
}

// bell is rung once; those who wait on go to another one.
type bell struct {
	rung    chan struct{}
	waiting int
}

// Await returns when there says true or fails. It asks at once, then whenever the topic's
// bell rings, and when ctx ends, of which there must take notice.
func (b *Board) Await(ctx context.Context, t Topic, there func() (bool, error)) error {
	for {
		if done, err := b.once(ctx, t, there); done || err != nil {
			return err
		}
	}
}

func (b *Board) once(ctx context.Context, t Topic, there func() (bool, error)) (bool, error) {
	at := b.join(t)
	defer b.leave(t, at)
	if done, err := there(); done || err != nil {
		return done, err
	}
	select {
	case <-at.rung:
	case <-ctx.Done():
	}
	return false, nil
}

func (b *Board) join(t Topic) *bell {
	b.waiting.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.bells[t]
	if at == nil {
		at = &bell{rung: make(chan struct{})}
		if b.bells == nil {
			b.bells = make(map[Topic]*bell)
		}
		b.bells[t] = at
	}
	at.waiting++
	return at
}

// leave takes away a bell that nobody hears any more.
func (b *Board) leave(t Topic, at *bell) {
	b.waiting.Add(-1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if at.waiting--; at.waiting == 0 && b.bells[t] == at {
		delete(b.bells, t)
	}
}

// Ring rings the bells of the topics that each yields. It is cheap if nobody waits.
func (b *Board) Ring(each func(ring func(Topic))) {
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	each(b.ring)
}

func (b *Board) ring(t Topic) {
	if at := b.bells[t]; at != nil {
		delete(b.bells, t)
		close(at.rung)
	}
}

// RingAll rings every bell.
func (b *Board) RingAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for t := range b.bells {
		b.ring(t)
	}
}
