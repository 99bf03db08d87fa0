package subscription

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
)

// situations must each be reached by the runs, else they prove less than they say.
var situations = []string{
	"appended", "timer", "crash", "crash, and it had landed", "hold", "held", "hold given up", "rewound", "skipped", "paused", "resumed", "tried",
	"released", "stopped", "another lane stops it", "named", "not named", "parked", "poison stops", "repeated", "store failed",
	"store broken",
}

// TestModel plays against a naive model: nothing is lost, the order is kept, at most one
// batch is repeated, nothing is overtaken that was not handled or parked; whatever fails, and
// whoever meddles.
func TestModel(t *testing.T) {
	hits := make(map[string]int)
	rapid.Check(t, func(rt *rapid.T) {
		dice := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(rt, what) }
		newGame(rt, dice, hits).play(20 + dice(400, "steps"))
	})
	t.Log(hits)
}

// TestModelUniform plays longer games than rapid does, with choices that are evenly spread. A
// failure names the seed. The games are always the same.
func TestModelUniform(t *testing.T) {
	hits := make(map[string]int)
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		dice := func(n int, _ string) int { return random.IntN(n) }
		newGame(seeded{t, seed}, dice, hits).play(600)
	}
	for _, what := range situations {
		if hits[what] == 0 {
			t.Errorf("never reached: %s", what)
		}
	}
	t.Log(hits)
}

// seeded names the seed of a game that fails.
type seeded struct {
	*testing.T
	seed uint64
}

func (s seeded) Fatalf(format string, args ...any) {
	s.Helper()
	s.T.Fatalf("seed %d: "+format, append([]any{s.seed}, args...)...)
}

func (g *game) play(steps int) {
	for range steps {
		g.act()
	}
	g.finish()
}

func (g *game) act() {
	switch roll := g.roll(60, "act"); {
	case roll < 6:
		g.append(1 + g.roll(6, "events"))
	case roll < 9:
		g.meddle()
	case roll < 10:
		g.crash()
	case roll < 12:
		g.hold()
	case roll < 16:
		g.release()
	case roll < 20:
		g.fire()
	case roll < 21:
		g.meddleFromOutside()
	default:
		g.answer()
	}
}

func (g *game) append(n int) {
	g.hit("appended")
	for range n {
		g.log = append(g.log, fact{wanted: g.roll(4, "wanted") > 0, poison: g.roll(12, "poison") == 0})
	}
}

func (g *game) fire() {
	if g.timer != nil {
		g.hit("timer")
		m := &messages.RetryFired{Generation: g.timer.Generation}
		g.timer = nil
		g.step(m)
	}
}

// crash loses all but the store and the log. What was being stored may be stored all the
// same.
func (g *game) crash() {
	g.hit("crash")
	if len(g.work) > 0 {
		if m, storing := g.work[0].(*messages.StorePosition); storing && g.chance(50, "landed") {
			g.hit("crash, and it had landed")
			g.land(m)
		}
	}
	g.begin(g.lane.generation + 1<<32)
}

func (g *game) hold() {
	if !g.held && !g.holding {
		g.hit("hold")
		g.holding = true
		g.step(&messages.HoldLane{})
	}
}

func (g *game) release() {
	switch {
	case g.held:
		g.hit("released")
	case g.holding:
		g.hit("hold given up")
	default:
		return
	}
	g.held, g.holding = false, false
	g.step(&messages.ReleaseLane{})
}

// meddle does what somebody does who holds the lane.
func (g *game) meddle() {
	if !g.held || g.trying {
		return
	}
	g.hit("held")
	switch g.roll(5, "meddle") {
	case 0:
		g.hit("rewound")
		g.move(1 + uint64(g.roll(len(g.log)+1, "to")))
	case 1:
		g.hit("skipped")
		g.move(uint64(len(g.log)) + 1)
	case 2:
		g.hit("paused")
		g.stopped = "paused"
	case 3:
		g.hit("resumed")
		g.stopped = ""
	case 4:
		if len(g.log) > 0 {
			g.hit("tried")
			g.trying = true
			g.step(&messages.TryEvent{Event: messages.LogEvent{Offset: 1 + uint64(g.roll(len(g.log), "try"))}})
		}
	}
}

// move sets the position. What lies before counts as skipped, unless it has been handled;
// what follows is to be handled again.
func (g *game) move(to uint64) {
	g.next, g.reached = to, to
	for i := range g.log {
		f := &g.log[i]
		if uint64(i) < to-1 {
			f.skipped = true
		} else {
			*f = fact{wanted: f.wanted, poison: f.poison}
		}
	}
}

func (g *game) meddleFromOutside() {
	switch g.roll(3, "from outside") {
	case 0:
		g.hit("stopped")
		g.step(&messages.StopLane{})
	case 1:
		g.hit("another lane stops it")
		g.stopped = "another lane"
		g.step(&messages.ReloadLane{})
	case 2:
		g.step(&messages.ReloadLane{})
	}
}

// finish heals everything, and lets the lane come to the end of the log.
func (g *game) finish() {
	g.healed = true
	for range 100_000 {
		switch {
		case g.held || g.holding && len(g.work)+len(g.mail) == 0 && g.timer == nil:
			g.release()
		case g.atEnd():
			g.checkAll()
			return
		case g.lane.state == messages.LaneHalted && g.stopAll:
			// Only what was repaired lets it go on.
			for i := range g.log {
				g.log[i].poison = false
			}
			g.stopped = ""
			g.step(&messages.ReloadLane{})
		case g.lane.state == messages.LaneHalted, g.lane.state == messages.LaneFailed:
			g.stopped = ""
			g.step(&messages.ReloadLane{})
		case g.timer != nil:
			g.fire()
		default:
			g.answer()
		}
	}
	g.t.Fatalf("it does not come to the end: %+v, asks for %d", g.lane.Status(), len(g.work))
}

func (g *game) atEnd() bool {
	return g.lane.state == messages.LaneWaiting && g.lane.next == uint64(len(g.log))+1
}

func (g *game) checkAll() {
	for i, f := range g.log {
		if f.wanted && !f.handled && !f.parked && !f.skipped {
			g.t.Fatalf("event %d is lost: %+v", i+1, f)
		}
	}
}
