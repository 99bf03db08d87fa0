package actors_test

import (
	"slices"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/actors/actorstest"
)

func TestSystemClock(t *testing.T) {
	c := actors.SystemClock()
	before := time.Now()
	if now := c.Now(); now.Before(before) || now.After(time.Now()) {
		t.Errorf("got %v", now)
	}
	called := make(chan struct{})
	timer := c.AfterFunc(0, func() { close(called) })
	next(t, called)
	if timer.Stop() {
		t.Error("stopped a call that was made")
	}
	if !c.AfterFunc(time.Hour, func() {}).Stop() {
		t.Error("could not stop a call")
	}
}

func TestFakeClockRunsWhatIsDueInOrder(t *testing.T) {
	start := time.Unix(100, 0)
	c := actorstest.NewFakeClock(start)
	var calls []string
	note := func(name string) func() {
		return func() { calls = append(calls, name+c.Now().Sub(start).String()) }
	}
	c.AfterFunc(3*time.Second, note("c"))
	c.AfterFunc(time.Second, func() {
		note("a")()
		c.AfterFunc(time.Second, note("b"))
		c.AfterFunc(time.Hour, note("never"))
	})
	c.AfterFunc(3*time.Second, note("d"))
	stopped := c.AfterFunc(2*time.Second, note("stopped"))
	last := c.AfterFunc(4*time.Second, note("later"))
	if !stopped.Stop() || stopped.Stop() {
		t.Error("Stop is true once")
	}
	c.AfterFunc(-time.Second, note("at once "))
	if calls != nil {
		t.Error("called before Advance")
	}
	c.Advance(3500 * time.Millisecond)
	if want := []string{"at once 0s", "a1s", "b2s", "c3s", "d3s"}; !slices.Equal(calls, want) {
		t.Errorf("got %q, want %q", calls, want)
	}
	if n := c.Timers(); n != 2 {
		t.Errorf("got %d timers, want 2", n)
	}
	if now := c.Now().Sub(start); now != 3500*time.Millisecond {
		t.Errorf("the clock stands at %v", now)
	}
	c.Advance(time.Second)
	if last.Stop() {
		t.Error("stopped a call that was made")
	}
}
