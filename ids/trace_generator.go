package ids

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// TraceOptions are the settings of a [TraceGenerator].
type TraceOptions struct {
	// Clock is where the time comes from. Default: the machine's.
	Clock Clock
	// Ordered lets each id be greater than all that were returned before its Next was called, whoever called it.
	// Processors share one chunk then, and hold each other up. Default: see [TraceGenerator].
	Ordered bool
}

// TraceGenerator makes the trace ids of a node. It is safe for concurrent use.
//
// No id comes twice within a [TracePeriod] if the node's number is used by one generator at a time, and a generator is
// made when the clock shows no earlier second than the last one that the generator before it has used. A generator gives
// no id in the second in which it is made.
//
// Seconds never fall: an id's second is at least that of every id that was returned before its Next was called, also
// when the clock is set back. Then it stays in the last second, and waits for the clock once that is used up. In a
// second in which calls of Next do not overlap, each id is greater than the one before it. In a second in which they
// do, they take chunks per processor, which come in no order; [TraceOptions] can have it otherwise.
//
// A second has 4096 chunks of 1023 ids: 4,190,208.
//
// The second in an id is the clock's, as long as timers fire in time; that the clock was set forward is seen within a
// second. An idle generator has no timer and no goroutine, and nothing is to be closed.
type TraceGenerator struct {
	// current is the second that ids are taken of, times 2; plus 1 if processors take from lanes of their own. It is
	// 0 when the clock must be asked. All read it, and it changes a few times a second.
	current atomic.Uint64
	node    uint64
	lanes   []lane
	_       [88]byte

	// own has a lane for each processor: which one is a hint, nothing depends on it.
	own   sync.Pool
	begun atomic.Uint32 // how often a processor has begun to use a lane
	clock Clock
	// armed says that a timer will clear current.
	armed atomic.Bool

	mu sync.Mutex
	// second is the last one that ids were taken of. Nothing is taken of the one in which the generator is made.
	second, made uint64
	// used are the chunks of the second that are used.
	used uint32
}

// NewTraceGenerator returns a generator. Of all generators that run at the same time, no other may have its node number.
func NewTraceGenerator(node uint16, o TraceOptions) *TraceGenerator {
	n := runtime.GOMAXPROCS(0)
	if o.Ordered {
		n = 1
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	made := secondOf(o.Clock.Now())
	g := &TraceGenerator{node: uint64(node) << nodeShift, clock: o.Clock, lanes: make([]lane, n), second: made, made: made}
	for i := range g.lanes {
		g.lanes[i].word.Store(maxCounter) // a chunk that is used up
	}
	return g
}

// secondOf returns the second of a time. Nothing is before 1970.
func secondOf(t time.Time) uint64 { return uint64(max(t.Unix(), 0)) }

// Next returns the next id. If the second's ids are used up it waits for the next one: it returns [ErrSecondUsedUp] with
// the context's error if that ends first, at once if it has ended already. It does not look at the context otherwise.
func (g *TraceGenerator) Next(ctx context.Context) (TraceID, error) {
	now := g.current.Load()
	if now&1 != 0 {
		return g.nextOfOwn(ctx, now>>1)
	}
	l := &g.lanes[0]
	word, taken, alone := l.take(now >> 1)
	if !alone && len(g.lanes) > 1 {
		g.current.CompareAndSwap(now, now|1)
	}
	if taken {
		return g.id(word), nil
	}
	return g.refill(ctx, l)
}

// nextOfOwn takes the id from the processor's lane.
func (g *TraceGenerator) nextOfOwn(ctx context.Context, second uint64) (id TraceID, err error) {
	l, _ := g.own.Get().(*lane)
	if l == nil {
		l = g.anotherLane()
	}
	word, taken, alone := l.take(second)
	if taken {
		id = g.id(word)
	} else {
		id, err = g.refill(ctx, l)
	}
	if !alone { // it is another processor's too
		l = g.anotherLane()
	}
	g.own.Put(l)
	return id, err
}

func (g *TraceGenerator) anotherLane() *lane { return &g.lanes[g.begun.Add(1)%uint32(len(g.lanes))] }

// id returns the id that a lane's word stands for.
func (g *TraceGenerator) id(word uint64) TraceID {
	const low = 1<<wordSecondShift - 1
	return TraceID((word>>wordSecondShift)&secondMask<<secondShift | g.node | word&low)
}

// refill gives a lane a new chunk and returns its first id. It waits until there is one.
func (g *TraceGenerator) refill(ctx context.Context, l *lane) (TraceID, error) {
	for {
		if word, taken := g.tryRefill(l); taken {
			return g.id(word), nil
		}
		if err := g.waitForNextSecond(ctx); err != nil {
			return 0, err
		}
	}
}

func (g *TraceGenerator) tryRefill(l *lane) (word uint64, taken bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.askClock()
	if word, taken, _ = l.take(g.second); taken { // somebody else has refilled it
		return word, true
	}
	if g.second == g.made {
		return 0, false
	}
	if g.used < chunks {
		word = firstOf(g.second, g.used)
		g.used++
		l.word.Store(word)
		return word, true
	}
	for i := range g.lanes {
		if word, taken, _ = g.lanes[i].take(g.second); taken {
			return word, true
		}
	}
	return 0, false
}

// askClock moves to the clock's second, if that is a later one, and makes sure that it is asked again in the next one.
func (g *TraceGenerator) askClock() {
	now := g.clock.Now()
	if second := secondOf(now); second > g.second {
		g.second, g.used = second, 0
	}
	if g.current.Load()>>1 == g.second {
		return
	}
	g.current.Store(g.second << 1)
	if g.armed.CompareAndSwap(false, true) {
		g.clock.AfterFunc(untilNextSecond(now), g.expire)
	}
}

// expire lets the next caller ask the clock. It takes no lock: a clock may call it under one of its own. Whoever arms the
// timer in between is only asked once more.
func (g *TraceGenerator) expire() {
	g.armed.Store(false)
	g.current.Store(0)
}

func (g *TraceGenerator) waitForNextSecond(ctx context.Context) error {
	now, passed := g.clock.Now(), make(chan struct{})
	timer := g.clock.AfterFunc(untilNextSecond(now), func() { close(passed) })
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
		timer.Stop()
		return g.usedUp(now, context.Cause(ctx))
	}
}

// usedUp says of what second no id can be had.
func (g *TraceGenerator) usedUp(now time.Time, cause error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	behind := ""
	if clock := secondOf(now); clock < g.second {
		behind = fmt.Sprintf(", and the clock is %d s behind it", g.second-clock)
	}
	if g.second == g.made {
		return fmt.Errorf("%w: the generator was made in second %d%s: %w", ErrSecondUsedUp, g.second, behind, cause)
	}
	return fmt.Errorf("%w: got %d chunks of second %d, which are all%s: %w", ErrSecondUsedUp, g.used, g.second, behind, cause)
}
