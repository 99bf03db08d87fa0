package cluster

import (
	"context"
	"sync"
	"time"
)

// standing is for how long the process stood still, as a busy machine lets it. Nodes lose each other then, and another one is
// elected, which is nobody's fault.
type standing struct {
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
}

// watch looks at the clock now and then. A look that comes late says that the process stood still.
func (s *standing) watch(ctx context.Context) {
	tick := time.NewTicker(failover / 20)
	defer tick.Stop()
	for s.look(); ; s.look() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *standing) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.last.IsZero() {
		s.longest = max(s.longest, now.Sub(s.last))
	}
	s.last = now
}

// begin forgets what was before.
func (s *standing) begin() {
	s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.longest = 0
}

// long reports whether the process stood still, since begin, for so long that nodes lose each other with a failover.
func (s *standing) long(failover time.Duration) bool {
	s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.longest > failover/2
}
