package report

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/bench/internal/usage"
)

// verdicts writes bars and returns the line of each promise that starts so, with
// single spaces.
func verdicts(t *testing.T, allowMissing bool, promise string, results ...Result) (string, error) {
	t.Helper()
	var out strings.Builder
	err := WriteBars(&out, results, allowMissing)
	for l := range strings.Lines(out.String()) {
		if strings.HasPrefix(l, promise) {
			return strings.Join(strings.Fields(l), " "), err
		}
	}
	return "", err
}

const overTheLimit = "256 callers, over the limit"

func TestBars(t *testing.T) {
	for name, tt := range map[string]struct {
		own, other []float64
		want       string
		missed     bool
	}{
		"held":         {[]float64{61}, []float64{100}, "0.61 at least 0.6 held", false},
		"just held":    {[]float64{60}, []float64{100}, "0.60 at least 0.6 held", false},
		"missed":       {[]float64{59}, []float64{100}, "0.59 at least 0.6 MISSED", true},
		"median":       {[]float64{61, 1, 70}, []float64{100, 100, 100}, "0.61 (median of 3) at least 0.6 held", false},
		"side by side": {[]float64{70, 14, 14}, []float64{100, 20, 20}, "0.70 (median of 3) at least 0.6 held", false},
	} {
		results := append(runs("limit/callers=256", tt.other...), fine(runs("partita", tt.own...))...)
		line, err := verdicts(t, false, overTheLimit, results...)
		if line != overTheLimit+" "+tt.want || errors.Is(err, ErrBars) != tt.missed {
			t.Errorf("%s: got %q, %v, want %q", name, line, err, tt.want)
		}
	}
}

func TestBarAtMost(t *testing.T) {
	for p50, want := range map[time.Duration]string{
		1300 * time.Microsecond: "1.30 at most 1.3 held",
		1400 * time.Microsecond: "1.40 at most 1.3 MISSED",
	} {
		own, other := runs("partita/callers=1", 5)[0], runs("bbolt-update", 5)[0]
		own.P50, other.P50 = p50, time.Millisecond
		const promise = "1 caller, p50, over a bare bbolt update"
		if line, _ := verdicts(t, false, promise, own, other); line != promise+" "+want {
			t.Errorf("got %q, want %q", line, want)
		}
	}
}

func TestBarsOfRowsThatWereNotRun(t *testing.T) {
	for _, results := range [][]Result{nil, runs("partita/callers=256", 1), runs("limit/callers=256", 1)} {
		var out strings.Builder
		if err := WriteBars(&out, results, false); err != nil || out.String() != "" {
			t.Errorf("got %q, %v, want nothing", out.String(), err)
		}
	}
}

func TestBarsThatCannotBeComputed(t *testing.T) {
	absent := Result{Row: "limit/callers=256", Unavailable: "no server"}
	broken := runs("limit/callers=256", 1, 1)
	broken[1].Failed = "a number is lost"
	elsewhere := runs("limit/callers=256", 1)
	elsewhere[0].Repeat = 7
	for name, tt := range map[string]struct {
		other        []Result
		allowMissing bool
		want         string
		bad          bool
	}{
		"not available":            {[]Result{absent}, false, "- at least 0.6 NOT MEASURED", true},
		"not available, allowed":   {[]Result{absent}, true, "- at least 0.6 not available", false},
		"one run is wrong":         {broken, true, "- at least 0.6 NOT MEASURED", true},
		"never next to each other": {elsewhere, true, "- at least 0.6 NOT MEASURED", true},
	} {
		line, err := verdicts(t, tt.allowMissing, overTheLimit, append(tt.other, fine(runs("partita", 1, 1))...)...)
		if line != overTheLimit+" "+tt.want || errors.Is(err, ErrBars) != tt.bad {
			t.Errorf("%s: got %q, %v, want %q", name, line, err, tt.want)
		}
	}
}

// set makes a result have a figure, and hold every other bar of its row alone.
func set(r *Result, f figure, value float64) {
	r.P50, r.P99, r.P999 = time.Second, time.Second, time.Second
	r.Window, r.PerSecond, r.PeakAnonymous, r.WrittenPerEvent = time.Second, []uint64{1}, 1, 1
	r.Acknowledged, r.Files = 1000, []usage.Size{{Name: "log.db", Bytes: 1 << 40}, {Name: "state.db", Bytes: 1}}
	r.Reading = &Reading{Readers: make([]Reader, 3)}
	r.Readers = len(r.Reading.Readers)
	r.Numbering = &Numbering{Days: 1}
	switch f {
	case eventsPerSecond:
		r.EventsPerSecond = value
	case callP50:
		r.P50 = time.Duration(value * float64(time.Second))
	case readFaults:
		r.Reading.Readers[1].Skipped = uint64(value)
	case readLag:
		r.Reading.Readers[1].Lag.P99 = time.Duration(value * float64(time.Millisecond))
	case dayFaults:
		r.Numbering.Doubled = uint64(value)
	case p99Times, p999Times:
		tail := time.Duration(value * float64(time.Second))
		if r.P99 = tail; f == p999Times {
			r.P99, r.P999 = time.Second, tail
		}
	case worstSecond:
		r.Window, r.PerSecond = 2500*time.Millisecond, []uint64{5, uint64(value), 0} // the last one is a half
	case anonymousMiB:
		r.PeakAnonymous = int64(value * (1 << 20))
	case writtenBytes:
		r.WrittenPerEvent = value
	case stateBytes:
		r.Files[1].Bytes = int64(1000 * value)
	}
}

// fine makes results hold every bar of their row alone.
func fine(results []Result) []Result {
	for i := range results {
		set(&results[i], eventsPerSecond, results[i].EventsPerSecond)
	}
	return results
}

// Every bar is judged alone, whatever its neighbours are.
func TestEachBarCanBeMissed(t *testing.T) {
	if len(bars) == 0 {
		t.Fatal("got no bars")
	}
	for i, b := range bars {
		good, bad := b.atLeast*1.01, b.atLeast*0.99
		if b.atLeast == 0 {
			good, bad = b.atMost*0.99, b.atMost*1.01
		}
		if b.of == readFaults || b.of == dayFaults {
			bad = 1
		}
		for value, want := range map[float64]string{good: held, bad: missed} {
			own, other := runs(b.row, 1)[0], runs(b.other, 1)[0]
			set(&own, b.of, value)
			set(&other, b.of, 1)
			results := []Result{own}
			if b.other != "" {
				results = append(results, other)
			}
			line, err := verdicts(t, false, b.promise, results...)
			if !strings.HasSuffix(line, want) || (err == nil) != (want == held) {
				t.Errorf("bar %d, value %v: got %q, %v, want %s", i, value, line, err, want)
			}
		}
		if slices.ContainsFunc(bars[:i], func(other bar) bool {
			return strings.HasPrefix(b.promise, other.promise) || strings.HasPrefix(other.promise, b.promise)
		}) {
			t.Errorf("bar %d: got %q again", i, b.promise)
		}
	}
}
