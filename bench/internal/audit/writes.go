// Package audit compares what readers have seen with what was acknowledged: which events
// a reader has skipped, seen twice or out of order, and how long after their
// acknowledgement it had them.
package audit

import (
	"fmt"
	"sync"
	"time"
)

// Writes remembers when each event was acknowledged. Writers count from 0, and the
// events of each one from 1. It is safe for concurrent use.
type Writes struct {
	begin   time.Time
	writers []writer
}

type writer struct {
	mu sync.Mutex
	// acknowledged[n-1] is when event n was acknowledged, since the beginning; 0: it was not.
	acknowledged []time.Duration
}

// NewWrites returns that of a number of writers, none of which has written.
func NewWrites(writers int) *Writes {
	return &Writes{begin: time.Now(), writers: make([]writer, writers)}
}

// Acknowledge notes when an event was acknowledged. A writer's events are noted in their
// order; those that failed are left out.
func (w *Writes) Acknowledge(writer int, number uint64, at time.Time) error {
	if writer < 0 || writer >= len(w.writers) {
		return fmt.Errorf("acknowledged: got writer %d, want one below %d", writer, len(w.writers))
	}
	own := &w.writers[writer]
	own.mu.Lock()
	defer own.mu.Unlock()
	if noted := uint64(len(own.acknowledged)); number <= noted {
		return fmt.Errorf("acknowledged: got event %d of writer %d, want one behind %d", number, writer, noted)
	}
	for uint64(len(own.acknowledged)) < number-1 {
		own.acknowledged = append(own.acknowledged, 0)
	}
	own.acknowledged = append(own.acknowledged, max(at.Sub(w.begin), 1))
	return nil
}

// acknowledged returns when an event was acknowledged, if it was by now.
func (w *Writes) acknowledged(writer int, number uint64) (at time.Time, ok bool) {
	own := &w.writers[writer]
	own.mu.Lock()
	defer own.mu.Unlock()
	if number > uint64(len(own.acknowledged)) || own.acknowledged[number-1] == 0 {
		return time.Time{}, false
	}
	return w.begin.Add(own.acknowledged[number-1]), true
}

// numbers calls each for every acknowledged event.
func (w *Writes) numbers(each func(writer int, number uint64)) {
	for i := range w.writers {
		own := &w.writers[i]
		own.mu.Lock()
		for n, at := range own.acknowledged {
			if at > 0 {
				each(i, uint64(n)+1)
			}
		}
		own.mu.Unlock()
	}
}
