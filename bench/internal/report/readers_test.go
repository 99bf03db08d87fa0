package report

import (
	"strings"
	"testing"
	"time"
)

// read is a result of a row that 3 readers have read.
func read(row string, readers ...Reader) Result {
	r := measured()
	r.Row, r.Acknowledged = row, 2000
	r.Reading = &Reading{Readers: make([]Reader, 3), Lag: Lag{P50: time.Millisecond, P99: 12 * time.Millisecond, Max: time.Second}}
	copy(r.Reading.Readers, readers)
	r.Readers = len(r.Reading.Readers)
	return r
}

func TestTableOfReaders(t *testing.T) {
	r := read("read/a",
		Reader{Seen: 2000, Skipped: 1, Lag: Lag{P50: time.Millisecond, P99: 13 * time.Millisecond}},
		Reader{Seen: 1990, Skipped: 10, Twice: 2, Lag: Lag{P50: 2 * time.Millisecond, P99: 11 * time.Millisecond}},
		Reader{Seen: 1995, OutOfOrder: 3})
	absent := Result{Row: "read/absent", Callers: 64, Readers: 3, Unavailable: "no such server"}
	broken := read("read/broken")
	broken.Failed, broken.Reading = "reader 2: it hangs", nil
	got := table(t, r, measured(), absent, broken)
	for row, want := range map[string]string{
		"read/a":          "read/a 8 3 2000 1000 - 11 2 3 1.00 ms 12.0 ms 1000.0 ms 13.0 ms 0 ok",
		"limit/callers=8": "limit/callers=8 8 1000 - 1.23 ms",
		"read/absent":     "read/absent 64 3 not available - -",
		"read/broken":     "read/broken 8 3 FAILED - -",
	} {
		if l := line(t, got, row); !strings.HasPrefix(l, want) {
			t.Errorf("got  %s\nwant %s", l, want)
		}
	}
	for _, want := range []string{
		"read/a: of each reader: seen 1990 to 2000, skipped 0 to 10, twice 0 to 2, out of order 0 to 3, lag p50 0.00 ms to 2.00 ms, lag p99 0.00 ms to 13.0 ms\n",
		"read/broken: FAILED: reader 2: it hangs\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got no %q in\n%s", want, got)
		}
	}
	if only := table(t, r); strings.Contains(only, "written/event") || strings.Count(only, "disorder") != 2 {
		t.Errorf("got the table of rows that only append too:\n%s", only)
	}
}

// Every kind of fault of any reader in any run misses the bar, whatever the other runs are.
func TestFaultsOfReaders(t *testing.T) {
	const promise = "no pauses: skipped, twice or out of order"
	for name, tt := range map[string]struct {
		reader Reader
		want   string
	}{
		"none":         {Reader{Seen: 7}, "0.00 (worst of 3) at most 0 held"},
		"skipped":      {Reader{Skipped: 1}, "1.00 (worst of 3) at most 0 MISSED"},
		"twice":        {Reader{Twice: 2}, "2.00 (worst of 3) at most 0 MISSED"},
		"out of order": {Reader{OutOfOrder: 3}, "3.00 (worst of 3) at most 0 MISSED"},
	} {
		results := []Result{read("read/partita"), read("read/partita", Reader{}, Reader{}, tt.reader), read("read/partita")}
		if line, _ := verdicts(t, false, promise, results...); line != promise+" "+tt.want {
			t.Errorf("%s: got %q, want %q", name, line, tt.want)
		}
	}
}

// The reader that is late counts, and of several runs the one in the middle.
func TestLagOfReaders(t *testing.T) {
	const promise = "pauses before the append: p99 of a reader's lag, ms"
	late := func(p99 time.Duration) Result {
		return read("read/pauses/partita", Reader{}, Reader{Lag: Lag{P99: p99}})
	}
	for want, results := range map[string][]Result{
		"19.00 at most 20 held":               {late(19 * time.Millisecond)},
		"21.00 at most 20 MISSED":             {late(21 * time.Millisecond)},
		"15.00 (median of 3) at most 20 held": {late(time.Second), late(15 * time.Millisecond), late(time.Millisecond)},
	} {
		if line, _ := verdicts(t, false, promise, results...); line != promise+" "+want {
			t.Errorf("got %q, want %q", line, want)
		}
	}
}

func TestReadingThatIsMissing(t *testing.T) {
	none, few := read("read/partita"), read("read/partita")
	none.Reading, none.Readers = nil, 0
	few.Reading.Readers = few.Reading.Readers[:2]
	const promise = "no pauses: skipped, twice or out of order"
	for _, r := range []Result{none, few} {
		if line, err := verdicts(t, true, promise, r); line != promise+" - at most 0 NOT MEASURED" || err == nil {
			t.Errorf("got %q, %v, want that it was not measured", line, err)
		}
	}
}
