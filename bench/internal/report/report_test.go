package report

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/bench/internal/usage"
)

func measured() Result {
	return Result{
		Row: "limit/callers=8", Callers: 8, Note: "bbolt 1", Window: time.Second, Rounds: 12, RoundsWanted: 10, Drain: 1550 * time.Millisecond, Events: 1000, EventsPerSecond: 1000.4,
		P50: 1234 * time.Microsecond, P99: 12 * time.Millisecond, P999: 100 * time.Millisecond,
		Files:   []usage.Size{{Name: "log.db", Bytes: 3 << 20}, {Name: "x", Bytes: 1 << 20}},
		Written: 5000, WrittenPerEvent: 5, WrittenFrom: WrittenByCalls, Disk: 6000, DiskPerEvent: 6,
		Processor: 25 * time.Millisecond, ProcessorPerEvent: 25 * time.Microsecond,
		PeakResident: 8 << 20, PeakAnonymous: 4 << 20, Of: OfProgram, Check: "all there",
	}
}

func table(t *testing.T, results ...Result) string {
	t.Helper()
	var out strings.Builder
	if err := WriteTable(&out, results); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// line returns the table's line of a row, with single spaces.
func line(t *testing.T, table, row string) string {
	t.Helper()
	for l := range strings.Lines(table) {
		if fields := strings.Fields(l); len(fields) > 0 && fields[0] == row {
			return strings.Join(fields, " ")
		}
	}
	t.Fatalf("got no line of %s in\n%s", row, table)
	return ""
}

func TestTable(t *testing.T) {
	got := table(t, measured())
	want := "limit/callers=8 8 1000 - 1.23 ms 12.0 ms 100.0 ms 0 12 1.6 s 4.0 MiB 5 25.00 6 8.0 MiB+ 4.0 MiB+ ok"
	if l := line(t, got, "limit/callers=8"); l != want {
		t.Errorf("got  %s\nwant %s", l, want)
	}
	for _, want := range []string{"limit/callers=8: bbolt 1\n", "checked: all there\n", "files: log.db 3.0 MiB, x 1.0 MiB\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("got no %q in\n%s", want, got)
		}
	}
}

func TestTableOfWhatWasNotMeasured(t *testing.T) {
	absent := Result{Row: "absent", Callers: 64, Unavailable: "no such server"}
	broken := measured()
	broken.Row, broken.Check, broken.Failed = "broken", "", "number 7 was acknowledged twice"
	grown := measured()
	grown.Row, grown.WrittenFrom, grown.Disk, grown.PeakResident, grown.Processor = "grown", WrittenAsGrowth, 0, 0, 0
	hasty := measured()
	hasty.Row, hasty.Rounds = "hasty", 9
	got := table(t, absent, broken, grown, hasty)
	for row, want := range map[string]string{"absent": "64 not available - - - - 0 -", "broken": "FAILED", "grown": "5* not measured not measured not measured", "hasty": "0 9! 1.6 s"} {
		if l := line(t, got, row); !strings.Contains(l, want) {
			t.Errorf("got %q, want %q in it", l, want)
		}
	}
	for _, want := range []string{"absent: NOT AVAILABLE: no such server\n", "broken: FAILED: number 7 was acknowledged twice\n", "hasty: TOO FEW: 9 rounds of background work, wanted 10"} {
		if !strings.Contains(got, want) {
			t.Errorf("got no %q in\n%s", want, got)
		}
	}
}

func TestLines(t *testing.T) {
	want := []Result{measured(), {Row: "absent", Unavailable: "no such server"}}
	var lines bytes.Buffer
	for i := range want {
		if err := WriteLine(&lines, &want[i]); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(lines.String(), "\n"); n != 2 {
		t.Errorf("got %d lines, want 2", n)
	}
	got, err := ReadLines(&lines)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func TestWrongLines(t *testing.T) {
	for _, text := range []string{"{", "7", `{"row":"a"} {}`} {
		if got, err := ReadLines(strings.NewReader(text)); err == nil {
			t.Errorf("%q: got %+v, want an error", text, got)
		}
	}
}

func TestErr(t *testing.T) {
	failing := measured()
	failing.Errors, failing.FirstError = 2, "refused"
	for name, tt := range map[string]struct {
		result       Result
		allowMissing bool
		want         string
	}{
		"measured":        {result: measured()},
		"calls failed":    {result: failing, want: "2 calls failed"},
		"failed":          {result: Result{Row: "a", Failed: "no disk"}, allowMissing: true, want: "no disk"},
		"missing":         {result: Result{Row: "a", Unavailable: "no server"}, want: "no server"},
		"missing allowed": {result: Result{Row: "a", Unavailable: "no server"}, allowMissing: true},
	} {
		err := Err([]Result{tt.result}, tt.allowMissing)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
