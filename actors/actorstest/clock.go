// Package actorstest has what tests of actors need.
package actorstest

import (
	"slices"
	"sync"
	"time"
)

// FakeClock is a clock of package actors whose time passes only in Advance. It is safe
// for concurrent use.
type FakeClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*timer // by due time; those due together in the order of their making
}

type timer struct {
	clock *FakeClock
	due   time.Time
	f     func()
}

// NewFakeClock returns a clock that stands at start.
func NewFakeClock(start time.Time) *FakeClock { return &FakeClock{now: start} }

// Now returns the time at which the clock stands. Inside a timer's function that
// is the time at which the timer was due.
func (c *FakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc makes a timer. Its function runs in Advance, never here, also if d is
// not above 0.
func (c *FakeClock) AfterFunc(d time.Duration, f func()) interface{ Stop() bool } {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{clock: c, due: c.now.Add(max(d, 0)), f: f}
	later := slices.IndexFunc(c.timers, func(o *timer) bool { return o.due.After(t.due) })
	if later < 0 {
		later = len(c.timers)
	}
	c.timers = slices.Insert(c.timers, later, t)
	return t
}

// Advance lets d pass. It runs the functions that become due on the caller's
// goroutine, in order, those included that are made meanwhile; they may use the
// clock, except for Advance.
func (c *FakeClock) Advance(d time.Duration) {
	end := c.Now().Add(d)
	for t := c.next(end); t != nil; t = c.next(end) {
		t.f()
	}
}

// AdvanceTo is Advance until the clock shows a time. It does nothing if the clock shows that or a later one.
func (c *FakeClock) AdvanceTo(t time.Time) { c.Advance(max(t.Sub(c.Now()), 0)) }

// Set lets the clock show another time, later or earlier. What waits for its timers waits as
// long as before, as when somebody sets a real clock.
func (c *FakeClock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.timers {
		t.due = now.Add(t.due.Sub(c.now))
	}
	c.now = now
}

// next removes the first timer that is due by end and moves the clock to it. If
// there is none, it moves the clock to end.
func (c *FakeClock) next(end time.Time) *timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 || c.timers[0].due.After(end) {
		c.now = end
		return nil
	}
	t := c.timers[0]
	c.timers = slices.Delete(c.timers, 0, 1)
	c.now = t.due
	return t
}

// Timers returns how many timers wait.
func (c *FakeClock) Timers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// Stop implements the timer of a clock.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	i := slices.Index(t.clock.timers, t)
	if i < 0 {
		return false
	}
	t.clock.timers = slices.Delete(t.clock.timers, i, i+1)
	return true
}
