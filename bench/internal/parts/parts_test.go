package parts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/partita-go/partita/bench/internal/report"
)

const (
	bolt   = "github.com/partita-go/partita/storage/bolt."
	actors = "github.com/partita-go/partita/actors."
	load   = "github.com/partita-go/partita/bench/internal/load."
)

// stack is a stack, the root first, and how long it took.
type stack struct {
	took      time.Duration
	functions []string
}

// profileOf makes a profile.
func profileOf(stacks ...stack) *profile.Profile {
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
		Period:     1,
	}
	for _, s := range stacks {
		sample := &profile.Sample{Value: []int64{1, int64(s.took)}}
		for _, name := range s.functions {
			f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
			l := &profile.Location{ID: uint64(len(p.Location) + 1), Line: []profile.Line{{Function: f}}}
			p.Function, p.Location = append(p.Function, f), append(p.Location, l)
			sample.Location = slices.Insert(sample.Location, 0, l) // the leaf comes first
		}
		p.Sample = append(p.Sample, sample)
	}
	return p
}

func TestStacksBelongToParts(t *testing.T) {
	for name, stacks := range map[string][][]string{
		"flusher": {
			{bolt + "(*flusher).run", bolt + "(*flusher).serve", "go.etcd.io/bbolt.(*Tx).Commit"},
			{actors + "(*Dispatcher).run", actors + "(*flusher).Receive", bolt + "(*Store).Flush"},
		},
		"committer": {{bolt + "(*committer).run", "runtime.mallocgc"}},
		"partition": {{actors + "(*Dispatcher).run", actors + "(*partition).Receive", "runtime.mallocgc"}},
		"appenders": {{actors + "(*Dispatcher).run", actors + "(*appender).Receive", bolt + "(*Store).Append"}},
		"mailboxes": {{actors + "(*Dispatcher).run", actors + "(*mailbox).run"}},
		"callers":   {{load + "(*run).call", load + "(*recorder).record"}},
		"garbage":   {{"runtime.gcBgMarkWorker", "runtime.systemstack", "runtime.gcDrain"}},
		"scheduling": {
			{"runtime.mcall", "runtime.park_m", "runtime.schedule"},
			{"runtime.mstart", "runtime.mstart0"},
		},
		"the rest": {{"runtime.main"}, {}},
	} {
		for _, functions := range stacks {
			all := costs(profileOf(stack{time.Second, functions}))
			for i, c := range all {
				want := time.Duration(0)
				if strings.HasPrefix(parts[i].name, name) {
					want = time.Second
				}
				if c.total != want {
					t.Errorf("%v: got %v for %q, want it for %q", functions, c.total, parts[i].name, name)
				}
			}
		}
	}
}

func TestSystemCallsAndAllocation(t *testing.T) {
	all := costs(profileOf(
		stack{5 * time.Second, []string{bolt + "(*committer).run", "syscall.Pwrite", "internal/runtime/syscall.Syscall6"}},
		stack{3 * time.Second, []string{bolt + "(*committer).run", "runtime.growslice", "runtime.mallocgc"}},
		stack{2 * time.Second, []string{bolt + "(*committer).run"}},
	))
	if got, want := all[1], (cost{total: 10 * time.Second, calls: 5 * time.Second, allocation: 3 * time.Second}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// resultOf writes a profile and returns a result with it.
func resultOf(t *testing.T, row string, events uint64, stacks ...stack) report.Result {
	t.Helper()
	name := filepath.Join(t.TempDir(), "row.pprof")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := profileOf(stacks...).Write(file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return report.Result{Row: row, Events: events, Window: 2 * time.Second, Check: "all there", Profile: name}
}

func TestRunsOfARowCountTogether(t *testing.T) {
	flusher, committer := []string{bolt + "(*flusher).run"}, []string{bolt + "(*committer).run"}
	var out strings.Builder
	err := Write(&out, []report.Result{
		{Row: "limit", Events: 7, Check: "all there"},
		resultOf(t, "a", 400_000, stack{time.Second, flusher}, stack{time.Second, committer}),
		resultOf(t, "a", 600_000, stack{2 * time.Second, flusher}),
		resultOf(t, "b", 1_000, stack{time.Second, committer}),
	})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"a: 1000000 events in 4s, 1.00 processors busy",
		"3.00 75% 0.00 0.00 flusher:", "1.00 25% 0.00 0.00 committer:", "4.00 100% 0.00 0.00 together",
		"b: 1000 events in 2s, 0.50 processors busy", "1000.00 100% 0.00 0.00 committer:",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(got, "limit") {
		t.Errorf("got a row without a profile in\n%s", out.String())
	}
}

func TestWithoutProfiles(t *testing.T) {
	for name, r := range map[string]report.Result{
		"none":    {Row: "a", Events: 1, Check: "all there"},
		"missing": {Row: "a", Events: 1, Check: "all there", Profile: filepath.Join(t.TempDir(), "missing")},
		"wrong":   {Row: "a", Events: 1, Failed: "a number is lost", Profile: "unread"},
	} {
		var out strings.Builder
		if err := Write(&out, []report.Result{r}); err == nil {
			t.Errorf("%s: got %q, want an error", name, out.String())
		}
	}
}
