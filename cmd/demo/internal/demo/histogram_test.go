package demo

import (
	"math"
	"testing"
	"time"
)

// Each latency counts, whatever it is, and is told to within a percent.
func TestHistogramTakesAll(t *testing.T) {
	all := newHistogram()
	for _, d := range []time.Duration{0, 1, 999, time.Millisecond, time.Hour, math.MaxInt64 - 1, math.MaxInt64} {
		one := newHistogram()
		if err := one.RecordValue(int64(d)); err != nil {
			t.Errorf("%v: %v", d, err)
		}
		if got := float64(one.ValueAtPercentile(50)); math.Abs(got-float64(d)) > float64(d)/100 {
			t.Errorf("got %g, want %d", got, d)
		}
		all.Merge(one)
	}
	if got := all.TotalCount(); got != 7 {
		t.Errorf("got %d latencies, want 7", got)
	}
}
