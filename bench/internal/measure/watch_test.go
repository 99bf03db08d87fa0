package measure

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/pprof/profile"

	"github.com/partita-go/partita/bench/internal/report"
)

// workingRow ends a round of background work with each call. Many rounds have ended
// before.
type workingRow struct{ fakeRow }

func (w *workingRow) Rounds() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls + 1_000_000_000
}

func measureWorking(t *testing.T, plan Plan) report.Result {
	t.Helper()
	plan.Warmup, plan.Window, plan.Workspaces = 10*time.Millisecond, 100*time.Millisecond, 1
	r := plan.Measure(t.Context(), Spec{Name: "working", Callers: 1, New: func(Settings) Row { return new(workingRow) }}, t.TempDir())
	if err := r.Err(false); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWindowLastsForRoundsOfBackgroundWork(t *testing.T) {
	for wanted, window := range map[uint64]time.Duration{
		1:    100 * time.Millisecond,
		210:  220 * time.Millisecond, // it is looked at every 20 ms
		1000: 500 * time.Millisecond, // as long as it may be
	} {
		synctest.Test(t, func(t *testing.T) {
			r := measureWorking(t, Plan{Rounds: wanted})
			rounds := uint64(window / time.Millisecond)
			if r.Window != window || r.RoundsWanted != wanted || r.Rounds < rounds-2 || r.Rounds > rounds+2 || r.Profile != "" {
				t.Errorf("got %d rounds in %v, %d wanted, profile %q, want about %d rounds in %v", r.Rounds, r.Window, r.RoundsWanted, r.Profile, rounds, window)
			}
		})
	}
}

func TestProfileIsOfTheWindow(t *testing.T) {
	name := filepath.Join(t.TempDir(), "row.pprof")
	r := measureWorking(t, Plan{Profile: name, Rounds: 1})
	if r.Profile != name {
		t.Errorf("got %q, want %q", r.Profile, name)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p, err := profile.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	// It ends as late as the machine lets it, but begins after the warm-up.
	if lasted := time.Duration(p.DurationNanos); lasted < r.Window/2 || p.PeriodType.Type != "cpu" {
		t.Errorf("got %v of %s, want %v of cpu", lasted, p.PeriodType.Type, r.Window)
	}
}

func TestProfileThatCannotBeWritten(t *testing.T) {
	plan := Plan{Warmup: time.Millisecond, Window: time.Second, Workspaces: 1, Profile: filepath.Join(t.TempDir(), "missing", "row.pprof")}
	r := plan.Measure(t.Context(), Spec{Name: "working", Callers: 1, New: func(Settings) Row { return new(workingRow) }}, t.TempDir())
	if r.Failed == "" {
		t.Errorf("got %+v, want a failure", r)
	}
}
