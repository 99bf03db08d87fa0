package command

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/bench/internal/report"
	"github.com/partita-go/partita/bench/internal/rows"
	"github.com/partita-go/partita/bench/internal/usage"
)

// linesOf are lines of rows that are right and equally fast.
func linesOf(t *testing.T, specs []measure.Spec, spoil func(*report.Result)) string {
	t.Helper()
	var lines bytes.Buffer
	for _, spec := range specs {
		r := report.Result{
			Row: spec.Name, Events: 1, EventsPerSecond: 1000, Check: "all there", Readers: spec.Readers,
			P50: time.Millisecond, P99: time.Millisecond, P999: time.Millisecond, Window: time.Second, PerSecond: []uint64{1},
			PeakAnonymous: 1, WrittenPerEvent: 1, Acknowledged: 1, Files: []usage.Size{{Name: "state.db", Bytes: 1}},
		}
		if spec.Readers > 0 {
			r.Reading = &report.Reading{Readers: make([]report.Reader, spec.Readers)}
		}
		if strings.HasPrefix(spec.Name, "midnight/") {
			r.Numbering = &report.Numbering{Days: 1}
		}
		spoil(&r)
		if err := report.WriteLine(&lines, &r); err != nil {
			t.Fatal(err)
		}
	}
	return lines.String()
}

// promises is how many bars there are.
const promises = 50

// Each bar is about rows that exist: one, or two that are measured next to each other.
func TestBarsAreOfRowsThatAreMeasuredTogether(t *testing.T) {
	verdicts := 0
	for _, group := range slices.Concat(rows.Groups(), rows.ReadingGroups(), rows.MidnightGroups()) {
		out, _, _ := bench(t, linesOf(t, group, func(*report.Result) {}), "table")
		verdicts += strings.Count(out, " held\n") + strings.Count(out, " MISSED\n")
	}
	if verdicts != promises {
		t.Errorf("got %d verdicts, want %d", verdicts, promises)
	}
}

func TestTableFailsIfABarIsMissed(t *testing.T) {
	fast := func(r *report.Result) {
		if strings.Contains(r.Row, "partita") {
			r.EventsPerSecond = 20_000
		}
	}
	out, errs, status := bench(t, linesOf(t, rows.All(), fast), "table")
	if status != 0 || strings.Count(out, " held\n") != promises {
		t.Errorf("all held: got status %d\n%s\n%s", status, out, errs)
	}
	slow := func(r *report.Result) {
		if fast(r); r.Row == "partita/dedup" {
			r.EventsPerSecond = 299
		}
	}
	out, errs, status = bench(t, linesOf(t, rows.All(), slow), "table")
	if status != 1 || strings.Count(out, " MISSED\n") != 1 || !strings.Contains(errs, "1 missed, 0 not measured, 49 held") {
		t.Errorf("one missed: got status %d\n%s\n%s", status, out, errs)
	}
	without := func(r *report.Result) {
		if fast(r); r.Row == "postgres-counter" {
			r.Events, r.Check, r.Unavailable = 0, "", "no server"
		}
	}
	out, errs, status = bench(t, linesOf(t, rows.All(), without), "table")
	if status != 1 || !strings.Contains(errs, "0 missed, 1 not measured") {
		t.Errorf("one missing: got status %d\n%s\n%s", status, out, errs)
	}
	if out, errs, status = bench(t, linesOf(t, rows.All(), without), "table", "-allow-missing"); status != 0 {
		t.Errorf("one missing, allowed: got status %d\n%s\n%s", status, out, errs)
	}
}

// Without any row that only appends the picture is another one, or none; but for some rows.
func TestPlotOfAllRows(t *testing.T) {
	all, errs, status := bench(t, linesOf(t, rows.All(), func(*report.Result) {}), "plot")
	if status != 0 {
		t.Fatalf("got status %d\n%s", status, errs)
	}
	for _, spec := range slices.Concat(rows.Groups()...) {
		without := func(r *report.Result) {
			if r.Row == spec.Name {
				r.Failed = "a number is lost"
			}
		}
		out, _, _ := bench(t, linesOf(t, rows.All(), without), "plot")
		wanted := spec.Name != "partita/dedup" && spec.Name != "bbolt-update" && !strings.Contains(spec.Name, "filled=")
		if drawn := out != all; drawn != wanted {
			t.Errorf("%s: got drawn %v, want %v", spec.Name, drawn, wanted)
		}
	}
}
