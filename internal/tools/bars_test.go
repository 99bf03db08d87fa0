package main

import (
	"strings"
	"testing"
)

const benchOutput = `goos: linux
BenchmarkInteractive/roundtrip=port-2     1000   600 ns/op   168 B/op  3 allocs/op
BenchmarkInteractive/roundtrip=future-2   1000  2000 ns/op   537 B/op  11 allocs/op
BenchmarkInteractive/in-turn-2              10  3.1 round-trips
BenchmarkInteractive/in-turn-2              10  3.3 round-trips
BenchmarkInteractive/in-turn-2              10  9.0 round-trips
BenchmarkRebuild-2                           4   600 ns/op   600000 events/s
`

func TestBarsTakeMediansAndRatios(t *testing.T) {
	var out strings.Builder
	if err := checkBars(strings.NewReader(benchOutput), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"in bare round trips", "3.33  no bar (median of 1)", "3.30  ok, at most 4 (median of 3)", "600000.00  ok, at least 300000", "not measured"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %q, want %q in it", out.String(), want)
		}
	}
}

func TestBarsFail(t *testing.T) {
	for name, output := range map[string]string{
		"too slow":         strings.ReplaceAll(benchOutput, "3.3 round-trips", "4.1 round-trips"),
		"too few":          strings.ReplaceAll(benchOutput, "600000 events/s", "299000 events/s"),
		"nothing measured": "goos: linux\n",
		"not a number":     strings.ReplaceAll(benchOutput, "600000 events/s", "many events/s"),
	} {
		var out strings.Builder
		if err := checkBars(strings.NewReader(output), &out); err == nil {
			t.Errorf("%s: got no error, want one; printed %q", name, out.String())
		}
	}
}
