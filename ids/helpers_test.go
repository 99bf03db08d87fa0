package ids_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/ids"
)

// fakeClock is a clock that the test moves. A timer is called when the time has come, or gone back and come.
type fakeClock struct {
	mu     sync.Mutex
	now    time.Time
	gone   time.Duration // by what timers go: it never falls
	timers map[*fakeTimer]time.Duration
	// armed gets a value for each timer, as long as there is room.
	armed chan struct{}
}

type fakeTimer struct {
	clock *fakeClock
	f     func()
}

// newClock returns a clock that shows a time in the middle of a second.
func newClock(unix int64) *fakeClock {
	return &fakeClock{now: time.Unix(unix, 500_000_000), timers: make(map[*fakeTimer]time.Duration), armed: make(chan struct{}, 100)}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) AfterFunc(d time.Duration, f func()) ids.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &fakeTimer{clock: c, f: f}
	c.timers[t] = c.gone + d
	select {
	case c.armed <- struct{}{}:
	default:
	}
	return t
}

func (t *fakeTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	_, there := t.clock.timers[t]
	delete(t.clock.timers, t)
	return there
}

// set changes what the clock shows, as an operator does: timers do not notice.
func (c *fakeClock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// pass lets time pass.
func (c *fakeClock) pass(d time.Duration) {
	c.mu.Lock()
	c.now, c.gone = c.now.Add(d), c.gone+d
	var due []func()
	for t, at := range c.timers {
		if at <= c.gone {
			delete(c.timers, t)
			due = append(due, t.f)
		}
	}
	c.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// ended is a context that has ended: whoever has it does not wait.
func ended() context.Context { return endedContext }

var endedContext = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// ready returns a generator whose first second has passed, and its clock.
func ready(o ids.TraceOptions) (*ids.TraceGenerator, *fakeClock) {
	clock := newClock(1_800_000_000)
	o.Clock = clock
	g := ids.NewTraceGenerator(7, o)
	clock.pass(time.Second)
	return g, clock
}

// next returns the next id, which must be there.
func next(t testing.TB, g *ids.TraceGenerator) ids.TraceID {
	t.Helper()
	id, err := g.Next(ended())
	if err != nil {
		t.Fatal(err)
	}
	if err := id.Validate(); err != nil {
		t.Fatal(err)
	}
	return id
}

// none makes sure that there is no id in this second.
func none(t testing.TB, g *ids.TraceGenerator) error {
	t.Helper()
	id, err := g.Next(ended())
	if !errors.Is(err, ids.ErrSecondUsedUp) || !errors.Is(err, context.Canceled) || id != 0 {
		t.Fatalf("got %v, %v, want ErrSecondUsedUp", id, err)
	}
	return err
}

// counter is a GeneratorCounter that no crash outlives.
type counter struct {
	mu   sync.Mutex
	last map[uint32]uint32
	err  error
}

func (c *counter) NextGenerator(_ context.Context, launch uint32) (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	if c.last == nil {
		c.last = make(map[uint32]uint32)
	}
	c.last[launch]++
	return c.last[launch], nil
}
