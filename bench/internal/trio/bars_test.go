package trio

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// figuresOf are figures of which each is what is given, or 1.
func figuresOf(given map[string][]float64) *Figures {
	f := new(Figures)
	for _, b := range bars {
		for _, name := range []string{b.of, b.over} {
			if name == "" || f.values[name] != nil {
				continue
			}
			values := given[name]
			if values == nil {
				values = []float64{1}
			}
			for _, v := range values {
				f.add(name, v)
			}
		}
	}
	return f
}

// good are figures by which all bars are held, if the others are 1.
func good() map[string][]float64 {
	return map[string][]float64{
		"read/rate": {20_000}, "steady/elections": {0}, "behind/catching-up": {2}, "partita/many/rate": {2},
	}
}

// verdicts writes figures, and returns the verdict of each bar that is not held, by its promise.
func verdicts(t *testing.T, f *Figures) (not map[string]string, err error) {
	t.Helper()
	var out bytes.Buffer
	err = f.Write(&out)
	not = make(map[string]string)
	for line := range strings.Lines(out.String()) {
		for _, b := range bars {
			if rest, ok := strings.CutPrefix(line, b.promise+" "); ok && !strings.HasSuffix(rest, " "+heldVerdict+"\n") {
				fields := strings.Fields(rest)
				not[b.promise] = fields[len(fields)-1]
			}
		}
	}
	return not, err
}

func TestEachBarIsHeldAtItsLimit(t *testing.T) {
	not, err := verdicts(t, figuresOf(good()))
	if err != nil {
		t.Errorf("got %v, %v", not, err)
	}
	for promise, verdict := range not {
		if verdict != toldVerdict {
			t.Errorf("%s: got %s", promise, verdict)
		}
	}
}

func TestEachBarIsMissedBeyondItsLimit(t *testing.T) {
	for _, b := range bars {
		if b.told {
			continue
		}
		given := good()
		switch own := given[b.of]; {
		case b.atLeast > 0:
			given[b.of] = []float64{b.atLeast * 0.99}
		case own == nil:
			given[b.of] = []float64{b.atMost*1.01 + 0.01}
		default:
			given[b.of] = []float64{own[0] + 1}
		}
		not, err := verdicts(t, figuresOf(given))
		if not[b.promise] != missedVerdict || !errors.Is(err, ErrBars) {
			t.Errorf("%s: got %q, %v", b.promise, not[b.promise], err)
		}
	}
}

// A ratio is of what was measured in the same turn: the machine is another one a minute later.
func TestRatiosAreOfOneTurn(t *testing.T) {
	given := good()
	given["partita/many/rate"], given["alone/many/rate"] = []float64{4, 8, 6}, []float64{8, 80, 24}
	b := bars[slices.IndexFunc(bars, func(b bar) bool { return b.over == "alone/many/rate" })]
	f := figuresOf(given)
	if got, want := b.figures(f), []float64{0.5, 0.1, 0.25}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if not, _ := verdicts(t, f); not[b.promise] != missedVerdict {
		t.Errorf("got %q: the median of the ratios is less than 0.3", not[b.promise])
	}
}

// One pause that is too long is one too many; of what varies the median counts.
func TestWorstAndMedian(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		missed bool
	}{
		{"hand-over/pause", []float64{10, 201, 20, 30}, true},
		{"hand-over/pause", []float64{10, 200, 20, 30}, false},
		{"read/p50", []float64{1, 9, 2}, false},
		{"read/p50", []float64{1, 9, 3}, true},
	} {
		given := good()
		given[tt.name] = tt.values
		not, err := verdicts(t, figuresOf(given))
		if (err != nil) != tt.missed {
			t.Errorf("%s %v: got %v, %v", tt.name, tt.values, not, err)
		}
	}
}

// What was not measured has no verdict.
func TestBarsOfWhatWasMeasured(t *testing.T) {
	f := new(Figures)
	f.add("read/rate", 1)
	f.add("partita/many/rate", 1)
	var out bytes.Buffer
	if err := f.Write(&out); !errors.Is(err, ErrBars) || strings.Count(out.String(), missedVerdict) != 1 ||
		strings.Contains(out.String(), "over alone") {
		t.Errorf("got %v\n%s", err, &out)
	}
}
