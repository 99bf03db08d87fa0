package sequencer

import (
	"flag"
	"fmt"
	"go/build"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
)

func TestMain(m *testing.M) {
	// The zone database that programs have in them, and not what this machine has.
	if err := os.Setenv("ZONEINFO", filepath.Join(build.Default.GOROOT, "lib", "time", "zoneinfo.zip")); err != nil {
		panic(err)
	}
	// More runs than rapid's default: one run takes a millisecond or two.
	if err := flag.Set("rapid.checks", "3000"); err != nil {
		panic(err)
	}
	// The games make much garbage, and keep little.
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// situations must each be reached by the runs of TestModel, else it proves less
// than it says.
var situations = []string{
	"granted at once", "granted after a load", "granted after waiting", "kind chosen anew", "kind mismatch",
	"stale load", "flushed while loading", "evicted while waiting", "born in flight",
	"number", "range", "counted by the owner", "overflow", "overflow of a range only", "unknown sequence", "WLog offset asked for",
	"raised", "raised to a low id", "raised below the last", "raised above the cap", "raised a foreign sequence",
	"wrong token", "deadline passed", "busy: unflushed", "busy: actualizing", "busy: stopping",
	"busy on the limit of keys", "busy on the limit of events",
	"flushed", "flushed late", "flush repeated by its owner", "late flush fenced", "late flush unknown", "late flush while actualizing",
	"cancelled", "actualized", "actualized again", "owner died", "transaction limit", "written after the end",
	"flush failed", "flush repeated", "flush of an older epoch", "flush diverged", "flush broken", "alarming",
	"load failed", "replay failed", "replay broken", "find failed",
	"actualization during a flush", "checkpoint during catch-up", "old answer",
	"crash", "restart", "stop while actualizing", "stop while idle", "stop while open", "stop while flushing",
	"stop while loading", "stop while writing", "stop while in doubt", "stop while searching", "stop while appends wait", "stop while failed", "stopped clean", "stopped dirty", "reconfigured",
	"appended", "appended a group", "appended where expected", "appended with an id", "appended with explicit ids", "appended with an update",
	"appended after a load", "append while actualizing", "append behind a transaction",
	"landed in doubt", "lost in doubt, appended later", "rested, appended later", "followed, appended later",
	"repeated", "repeated in flight", "repeated though its offset is old", "repeated beyond the batch limit",
	"append refused: offset", "append refused: offset in flight", "append refused: kind", "append refused: kind in flight",
	"append refused: overflow", "append refused: overflow in flight", "append refused: overflow in a group",
	"append refused: ahead", "append refused: ahead in flight", "append refused: ahead in a group",
	"append refused: other drafts", "append refused: other drafts in flight", "append refused: deadline",
	"append refused: conflict", "append refused: by the store", "append refused: no space", "append refused: diverged",
	"append refused: fenced", "append refused: failed", "append refused: load failed", "append refused: draft",
	"append refused: unflushed", "append refused: stopping",
	"append unknown", "append unknown in doubt", "append unknown: follower", "append unknown: search failed",
	"batch of many", "one by one", "batch of an older epoch", "old answer about a batch",
	"batch refused: duplicate", "batch refused: several", "batch refused: first", "batch refused: in the middle",
	"batch refused: last", "batch refused: nobody knows whom", "tail full",
	"write unknown", "write fenced", "write diverged", "taken over",
	"restarted", "late number", "first number of an old period", "number ahead", "periods closed",
	"zone set", "zone set twice at one time", "behind by its own zone", "ahead by its own zone",
	"current behind the newest", "current not stored at hand", "clock set back over midnight",
	"date refused: closed", "date refused: too far ahead", "several dates in a group",
	"append refused: row under a number that restarts", "append refused: overflow in a period",
	"loaded on demand", "several periods loaded on demand", "granted after a load on demand",
	"old periods forgotten",
	"brought along", "brought along in a period", "brought along over a hole", "moved", "moved in a period", "moved over a hole",
	"several periods taken over at once", "append refused: backward", "append refused: backward in flight",
	"held by events in flight", "held by bytes in flight", "held by a Start behind a batch", "restart while writing",
}

// TestModel plays games whose choices rapid draws anew each time, and shrinks. That all
// situations are reached is checked where the games are always the same.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := newGame(rt, rapidDice{rt})
		for range 10 + g.dice.roll(1000, "steps") {
			g.act()
		}
		g.finish()
	})
}

// TestModelUniform plays longer games than rapid does, with choices that are evenly
// spread. A failure names the seed.
func TestModelUniform(t *testing.T) {
	hits := make(map[string]int)
	for seed := range uint64(games(t)) {
		g := newGame(seeded{t, seed}, seededDice{rand.New(rand.NewPCG(seed, 1))})
		for range 2000 {
			g.act()
		}
		g.finish()
		addHits(hits, g.hits)
	}
	checkHits(t, hits)
}

func games(t *testing.T) int {
	if testing.Short() {
		t.Skip("short")
	}
	return 320
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

func addHits(sum, hits map[string]int) {
	for what, n := range hits {
		sum[what] += n
	}
}

// checkHits fails when a situation was never reached.
func checkHits(t *testing.T, hits map[string]int) {
	t.Helper()
	for _, what := range situations {
		if hits[what] == 0 {
			t.Errorf("never reached: %s", what)
		}
		if testing.Verbose() {
			t.Logf("%7d  %s", hits[what], what)
		}
	}
	for what := range hits {
		if !slices.Contains(situations, what) {
			t.Errorf("not listed: %s", what)
		}
	}
}

// TestSameScriptSameEffects runs the same choices twice: map order, or anything
// else that is not the input, must not reach an effect.
func TestSameScriptSameEffects(t *testing.T) {
	play := func(seed uint64) []string {
		g := newGame(t, seededDice{rand.New(rand.NewPCG(seed, 0))})
		var trace []string
		g.observe = func(m messages.PartitionMessage, fx *Effects) { trace = append(trace, traceOf(m, fx)...) }
		for range 1000 {
			g.act()
		}
		g.finish()
		return trace
	}
	for seed := range uint64(100) {
		first, second := play(seed), play(seed)
		for i := range max(len(first), len(second)) {
			if i >= len(first) || i >= len(second) || first[i] != second[i] {
				t.Fatalf("seed %d, effect %d differs:\n%v\n%v", seed, i, at(first, i), at(second, i))
			}
		}
	}
}

// traceOf writes a message and its effects down, with all that is in them.
func traceOf(m messages.PartitionMessage, fx *Effects) []string {
	trace := []string{fmt.Sprintf("> %T %+v", m, m), fmt.Sprintf("arm %v, status %v, stopped %v", fx.Arm, fx.Status, fx.Stopped)}
	for _, r := range fx.Replies {
		trace = append(trace, fmt.Sprintf("reply %d %T %+v", r.To.(*call).id, r.Message, r.Message))
	}
	for _, m := range fx.Reader {
		trace = append(trace, fmt.Sprintf("reader %T %+v", m, m))
	}
	for _, m := range fx.Actualizer {
		trace = append(trace, fmt.Sprintf("actualizer %T %+v", m, m))
	}
	if fx.Flusher != nil {
		trace = append(trace, fmt.Sprintf("flusher %+v", fx.Flusher))
	}
	if fx.Appender != nil {
		trace = append(trace, fmt.Sprintf("appender %+v", fx.Appender))
	}
	return trace
}

func at(trace []string, i int) string {
	if i < len(trace) {
		return trace[i]
	}
	return "nothing"
}
