package trio

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// steady is a load in the background: callers that append with ids until they are stopped.
type steady struct {
	system  system
	ctx     context.Context
	cancel  context.CancelFunc
	ended   atomic.Bool
	running sync.WaitGroup
	callers []steadyCaller
}

// steadyCaller is one of its callers.
type steadyCaller struct {
	mu           sync.Mutex
	acknowledged uint64
	// last is when the last event was acknowledged, longest the longest time between two since mark.
	last    time.Time
	longest time.Duration
	err     error
}

func startSteady(s system, callers int) *steady {
	st := &steady{system: s, callers: make([]steadyCaller, callers)}
	st.ctx, st.cancel = context.WithCancel(context.Background())
	for i := range st.callers {
		st.callers[i].last = time.Now()
		st.running.Go(func() { st.call(i) })
	}
	return st
}

func (s *steady) call(i int) {
	c := &s.callers[i]
	for !s.ended.Load() {
		err := s.system.Append(s.ctx, i, true)
		if c.note(time.Now(), err); err != nil {
			return
		}
	}
}

// note notes what an append has come to.
func (c *steadyCaller) note(now time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.err = err
		return
	}
	c.longest, c.last = max(c.longest, now.Sub(c.last)), now
	c.acknowledged++
}

// mark lets longest tell about the time from now on.
func (s *steady) mark() {
	for i := range s.callers {
		c := &s.callers[i]
		c.mu.Lock()
		c.longest = 0
		c.mu.Unlock()
	}
}

// longest returns the longest time for which a caller has waited, or waits.
func (s *steady) longest() (longest time.Duration) {
	now := time.Now()
	for i := range s.callers {
		longest = max(longest, s.callers[i].waited(now))
	}
	return longest
}

func (c *steadyCaller) waited(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.longest, now.Sub(c.last))
}

// stop ends the load, and returns how many events were acknowledged.
func (s *steady) stop() (acknowledged uint64, err error) {
	s.ended.Store(true)
	timer := time.AfterFunc(grace, s.cancel)
	s.running.Wait()
	timer.Stop()
	s.cancel()
	for i := range s.callers {
		acknowledged += s.callers[i].acknowledged
		err = errors.Join(err, s.callers[i].err)
	}
	return acknowledged, err
}

// fill appends so many events, and says how fast. Some calls may fail.
func (n *node) fill(ctx context.Context, callers int, events uint64) (a answer, err error) {
	var begun atomic.Uint64
	var running sync.WaitGroup
	var mu sync.Mutex
	note := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if a.Failed++; a.Failed == 1 {
			a.FirstError = err.Error()
		}
	}
	start := time.Now()
	for caller := range callers {
		running.Go(func() {
			for begun.Add(1) <= events && ctx.Err() == nil {
				if err := n.system.Append(ctx, caller, false); err != nil {
					note(err)
				}
			}
		})
	}
	running.Wait()
	a.Acknowledged = events - a.Failed
	a.Rate = float64(a.Acknowledged) / time.Since(start).Seconds()
	return a, context.Cause(ctx)
}
