package report

import (
	"strings"
	"testing"
)

// numbered is a result of a row whose numbers begin anew each day.
func numbered(row string, n *Numbering) Result {
	r := measured()
	r.Row, r.Numbering = row, n
	return r
}

func TestTableOfNumbering(t *testing.T) {
	got := table(t, measured(), numbered("midnight/a", &Numbering{Days: 12, Doubled: 3, Missing: 45}))
	for row, want := range map[string]string{
		"midnight/a":      "midnight/a 8 1000 - 12 3 45 1.23 ms 12.0 ms 0 ok",
		"limit/callers=8": "limit/callers=8 8 1000 - 1.23 ms 12.0 ms 100.0 ms 0 12",
	} {
		if l := line(t, got, row); !strings.HasPrefix(l, want) {
			t.Errorf("got  %s\nwant %s", l, want)
		}
	}
}

// Each kind of fault in any run misses the bar. Where no day has ended nothing was shown.
func TestFaultsOfNumbering(t *testing.T) {
	const promise = "midnights: doubled or missing"
	for want, n := range map[string]*Numbering{
		"0.00 (worst of 3) at most 0 held":   {Days: 1},
		"1.00 (worst of 3) at most 0 MISSED": {Days: 1, Doubled: 1},
		"2.00 (worst of 3) at most 0 MISSED": {Days: 1, Missing: 2},
		"- at most 0 NOT MEASURED":           {},
	} {
		right := numbered("midnight/partita", &Numbering{Days: 1})
		if line, _ := verdicts(t, false, promise, right, numbered("midnight/partita", n), right); line != promise+" "+want {
			t.Errorf("got %q, want %q", line, want)
		}
	}
	if line, _ := verdicts(t, false, promise, numbered("midnight/partita", nil)); !strings.HasSuffix(line, notMeasured) {
		t.Errorf("got %q, want that it was not measured", line)
	}
}
