package subscription

import (
	"slices"

	"github.com/partita-go/partita/messages"
)

// gameBatch is how many events a read of the game gives at the most.
const gameBatch = 4

// fact is an event of the game's log, and what has become of it.
type fact struct {
	wanted, poison bool
	// handled, parked or skipped is what must become of each that is wanted.
	handled, parked, skipped bool
}

// game is a lane in a world that is simple enough to be right: a log, a store, a handler,
// and somebody who meddles.
type game struct {
	t    failing
	dice func(n int, what string) int
	hits map[string]int

	lane *Lane
	// work is what the lane has asked for and the deliverer has not answered yet: it does one
	// after the other.
	work []messages.DelivererMessage
	// mail are the deliverer's answers that are under way, in their order.
	mail  []func()
	timer *Alarm

	// log[i] is the event at offset i+1.
	log []fact
	// next and stopped are what the store says.
	next    uint64
	stopped string
	// reached is the naive model of where the lane stands: everything before was handled,
	// parked, skipped or is not wanted.
	reached uint64
	// failed is what was handed over when the handler failed last.
	failed []uint64

	holding, held, trying bool
	// halted says that the lane knows that the subscription was stopped.
	halted  bool
	healed  bool
	stopAll bool
}

// failing is a test, of the testing package or of rapid.
type failing interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newGame(t failing, dice func(n int, what string) int, hits map[string]int) *game {
	g := &game{t: t, dice: dice, hits: hits, next: 1, reached: 1, stopAll: dice(2, "stop on poison") == 1}
	g.begin(0)
	return g
}

func (g *game) config(generation uint64) Config {
	c := testConfig()
	c.MaxTries, c.StopOnPoison = 2, g.stopAll
	c.Generation, c.Held = generation, g.held || g.holding
	return c
}

// begin makes a lane. What another one had asked for is gone.
func (g *game) begin(generation uint64) {
	g.work, g.mail, g.timer, g.trying, g.halted = nil, nil, nil, false, false
	g.lane = New(g.config(generation))
	g.carryOut(g.lane.Begin())
	if g.holding {
		g.holding, g.held = false, true
	}
}

func (g *game) roll(n int, what string) int { return g.dice(n, what) }

func (g *game) chance(percent int, what string) bool {
	return !g.healed && g.roll(100, what) < percent
}

func (g *game) hit(what string) { g.hits[what]++ }

func (g *game) step(m messages.LaneMessage) { g.carryOut(g.lane.Step("somebody", m)) }

// carryOut keeps what is to be done, and checks what may be asked for.
func (g *game) carryOut(fx *Effects) {
	if fx.Disarm {
		g.timer = nil
	}
	if fx.Work != nil {
		g.work = append(g.work, fx.Work)
		g.check(fx.Work)
	}
	if fx.Arm != nil {
		g.timer = fx.Arm
	}
	for _, r := range fx.Replies {
		switch r.Message.(type) {
		case *messages.Held:
			g.holding, g.held, g.halted = false, true, false
		case *messages.Tried:
			g.trying = false
		}
	}
	if fx.Ended {
		g.begin(g.lane.generation)
	}
}

func (g *game) check(work messages.DelivererMessage) {
	switch m := work.(type) {
	case *messages.HandleBatch:
		g.checkHandedOver(m)
	case *messages.StorePosition:
		g.checkStored(m)
	case *messages.LoadPosition, *messages.AwaitLog, *messages.ReadLog:
	}
	if g.held && !g.trying {
		if _, load := work.(*messages.LoadPosition); !load {
			g.t.Fatalf("%T while it is held", work)
		}
	}
}

// checkHandedOver: the wanted events in their order from the model's position on, none left
// out.
func (g *game) checkHandedOver(m *messages.HandleBatch) {
	if g.trying {
		return
	}
	if g.halted {
		g.t.Fatalf("handed over while it is halted")
	}
	if len(m.Events) == 0 || len(m.Events) > gameBatch {
		g.t.Fatalf("got a batch of %d", len(m.Events))
	}
	want := g.wantedFrom(g.reached)
	for i, e := range m.Events {
		if i >= len(want) || e.Offset != want[i] {
			g.t.Fatalf("handed over %v, want %v from %d on", offsetsOf(m.Events), want, g.reached)
		}
	}
}

// checkStored: what is stored was reached, apart from an event that is given up.
func (g *game) checkStored(m *messages.StorePosition) {
	for _, o := range g.wantedFrom(g.reached) {
		if o >= m.Next {
			break
		}
		if m.Park == nil || m.Park.Offset != o {
			g.t.Fatalf("stores %d, but event %d was not handled", m.Next, o)
		}
	}
	if m.Park != nil && !slices.Contains(g.failed, m.Park.Offset) {
		g.t.Fatalf("parks %d, which has not failed", m.Park.Offset)
	}
}

// wantedFrom returns the offsets of wanted events.
func (g *game) wantedFrom(from uint64) (all []uint64) {
	for i := from; i <= uint64(len(g.log)); i++ {
		if g.log[i-1].wanted {
			all = append(all, i)
		}
	}
	return all
}

// answer does the work that was asked for first. Nobody may want the answer any more.
func (g *game) answer() {
	if len(g.mail) > 0 && (len(g.work) == 0 || g.roll(3, "mail") > 0) {
		arrive := g.mail[0]
		g.mail = g.mail[1:]
		arrive()
		return
	}
	if len(g.work) == 0 {
		return
	}
	switch m := g.work[0].(type) {
	case *messages.LoadPosition:
		g.answerLoad(m)
	case *messages.AwaitLog:
		if len(g.work) > 1 || g.lane.state != messages.LaneWaiting || uint64(len(g.log)) >= m.Offset {
			g.done()
			g.post(&messages.LogGrown{Generation: m.Generation, Outcome: g.outcome(5)})
		}
	case *messages.ReadLog:
		g.answerRead(m)
	case *messages.HandleBatch:
		g.wantedStill(m.Generation)
		g.answerHandle(m)
	case *messages.StorePosition:
		g.wantedStill(m.Generation)
		g.answerStore(m)
	}
}

// wantedStill: what leaves something behind is not forgotten while it is done.
func (g *game) wantedStill(generation uint64) {
	if generation != g.lane.generation {
		g.t.Fatalf("the lane has forgotten %T", g.work[0])
	}
}

func (g *game) done() { g.work = g.work[1:] }

func (g *game) post(m messages.LaneMessage) { g.mail = append(g.mail, func() { g.step(m) }) }

// outcome is that of something that fails sometimes.
func (g *game) outcome(percent int) messages.Outcome {
	switch {
	case g.chance(percent, "fails"):
		g.hit("store failed")
		return messages.Retry
	case g.chance(1, "breaks"):
		g.hit("store broken")
		return messages.Broken
	}
	return messages.Done
}

func (g *game) answerLoad(m *messages.LoadPosition) {
	g.done()
	loaded := &messages.PositionLoaded{Generation: m.Generation, Next: g.next, Stopped: g.stopped, Outcome: g.outcome(10)}
	g.mail = append(g.mail, func() {
		if loaded.Outcome == messages.Done && m.Generation == g.lane.generation {
			g.checkLoaded(loaded)
		}
		g.step(loaded)
	})
}

// checkLoaded: at most one batch is repeated.
func (g *game) checkLoaded(m *messages.PositionLoaded) {
	if repeated := g.between(m.Next, g.reached); repeated > gameBatch {
		g.t.Fatalf("%d events are repeated, from %d to %d", repeated, m.Next, g.reached)
	} else if repeated > 0 {
		g.hit("repeated")
	}
	g.reached, g.halted = m.Next, m.Stopped != ""
}

func (g *game) between(from, to uint64) (n int) {
	for _, o := range g.wantedFrom(from) {
		if o < to {
			n++
		}
	}
	return n
}

func (g *game) answerRead(m *messages.ReadLog) {
	g.done()
	read := &messages.EventsRead{Generation: m.Generation, Next: m.From, Outcome: g.outcome(5)}
	for limit := 1 + g.roll(gameBatch, "read"); read.Next <= uint64(len(g.log)) && len(read.Events) < limit; read.Next++ {
		if g.log[read.Next-1].wanted {
			read.Events = append(read.Events, messages.LogEvent{Offset: read.Next})
		}
	}
	if read.Outcome != messages.Done {
		read.Events, read.Next = nil, m.From
	}
	g.post(read)
}

// answerHandle is the handler: it fails on poison, and sometimes for no reason, after having
// handled what comes before.
func (g *game) answerHandle(m *messages.HandleBatch) {
	g.done()
	bad := slices.IndexFunc(m.Events, func(e messages.LogEvent) bool { return g.log[e.Offset-1].poison })
	if bad < 0 && g.chance(15, "handler fails") {
		bad = g.roll(len(m.Events), "at")
	}
	reply := &messages.BatchHandled{Generation: m.Generation, Failed: -1}
	handled := len(m.Events)
	if bad >= 0 {
		reply.Err, handled = errHandler, 0
		g.failed = nil
		for _, e := range m.Events {
			g.failed = append(g.failed, e.Offset)
		}
		if g.roll(2, "names it") == 0 {
			reply.Failed, handled = bad, bad
			g.hit("named")
		} else if len(m.Events) > 1 {
			g.hit("not named")
		}
	}
	if !g.trying {
		for _, e := range m.Events[:handled] {
			g.log[e.Offset-1].handled = true
			g.reached = e.Offset + 1
		}
	}
	g.post(reply)
}

// answerStore: durable, not durable, or durable and nobody knows.
func (g *game) answerStore(m *messages.StorePosition) {
	g.done()
	o := g.outcome(10)
	if o == messages.Done || g.chance(50, "landed") {
		g.land(m)
	}
	g.post(&messages.PositionStored{Generation: m.Generation, Outcome: o, Err: errStore})
}

func (g *game) land(m *messages.StorePosition) {
	g.next = m.Next
	if m.Stopped != "" {
		g.stopped = m.Stopped
		g.hit("poison stops")
	}
	if m.Park != nil {
		g.log[m.Park.Offset-1].parked = true
		g.reached = max(g.reached, m.Park.Offset+1)
		g.hit("parked")
	}
	g.reached = max(g.reached, m.Next)
}
