// Package pace bounds how often something happens.
package pace

import (
	"sync/atomic"
	"time"
)

// Limit lets so many through in a second, by the virtual scheduling algorithm of ITU-T I.371: each
// one is due an interval after the one before, and none is let through that comes too early. It is safe for
// concurrent use.
type Limit struct {
	interval, early time.Duration
	due             atomic.Int64
}

// New returns a limit of rate a second, at least 1. What is due within burst may come at once.
func New(rate int, burst time.Duration) *Limit {
	interval := time.Second / time.Duration(rate)
	return &Limit{interval: interval, early: max(burst, interval)}
}

// Allows reports whether one is let through at a time, which is counted from any moment on.
func (l *Limit) Allows(now time.Duration) bool {
	for {
		due := l.due.Load()
		next := max(due, int64(now))
		if next-int64(now) >= int64(l.early) {
			return false
		}
		if l.due.CompareAndSwap(due, next+int64(l.interval)) {
			return true
		}
	}
}
