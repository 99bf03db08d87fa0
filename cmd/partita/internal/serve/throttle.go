package serve

import (
	"context"
	"time"
)

// leastWork is how long it is worked before there is a rest.
const leastWork = 5 * time.Millisecond

// Throttle lets work rest, so that it takes a share of the time and leaves the disk to others. One goroutine uses it.
type Throttle struct {
	// last is when it has rested last.
	last time.Time
}

// NewThrottle begins the work.
func NewThrottle() *Throttle { return &Throttle{last: time.Now()} }

// Rest rests for as long as the work since the last rest wants, of which share percent of the time are to be. It ends
// early with ctx, or when changed is closed.
func (t *Throttle) Rest(ctx context.Context, share int, changed <-chan struct{}) {
	worked := time.Since(t.last)
	if worked < leastWork {
		return
	}
	timer := time.NewTimer(worked * time.Duration(100-share) / time.Duration(share))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
	}
	t.last = time.Now()
}
