package report

import (
	"math"
	"strings"
	"testing"
)

// runs returns results of a row that are right, one for each speed.
func runs(row string, speeds ...float64) []Result {
	results := make([]Result, len(speeds))
	for i, speed := range speeds {
		results[i] = measured()
		results[i].Row, results[i].EventsPerSecond, results[i].Repeat = row, speed, i
	}
	return results
}

func TestSummaryIsTheRunInTheMiddle(t *testing.T) {
	results := append(runs("a", 30, 10, 20), runs("b", 5)...)
	results = append(results, runs("c", 4, 2)...)
	got := Summarize(results)
	if len(got) != 3 {
		t.Fatalf("got %d rows, want 3", len(got))
	}
	for i, want := range []struct {
		row                      string
		speed, slowest, fastest  float64
		runs, repeatOfTheSummary int
	}{
		{"a", 20, 10, 30, 3, 2},
		{"b", 5, 5, 5, 1, 0},
		{"c", 2, 2, 4, 2, 1},
	} {
		s := got[i]
		if s.Row != want.row || s.EventsPerSecond != want.speed || s.Slowest != want.slowest || s.Fastest != want.fastest || s.Runs != want.runs || s.Repeat != want.repeatOfTheSummary {
			t.Errorf("got %+v, want %+v", s, want)
		}
	}
	if l := line(t, table(t, results...), "a"); !strings.HasPrefix(l, "a 8 20 10-30 1.23 ms") {
		t.Errorf("got %q, want the run in the middle and the spread", l)
	}
}

func TestSummaryOfARunThatIsWrong(t *testing.T) {
	for name, spoil := range map[string]func(*Result){
		"failed":      func(r *Result) { r.Failed = "a number is lost" },
		"unavailable": func(r *Result) { r.Unavailable = "no server" },
		"calls fail":  func(r *Result) { r.Errors = 1 },
		"unchecked":   func(r *Result) { r.Check = "" },
		"empty":       func(r *Result) { r.Events = 0 },
	} {
		results := runs("a", 30, 10, 20)
		spoil(&results[1])
		if got := Summarize(results); len(got) != 1 || got[0].Repeat != 1 || got[0].Right() {
			t.Errorf("%s: got %+v, want the one that is wrong", name, got)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 100, 2}, 3}} {
		if got := Median(tt.values); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%v: got %v, want %v", tt.values, got, tt.want)
		}
	}
}
