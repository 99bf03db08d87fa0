package bench

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Times are how long something took.
type Times struct {
	Count          int64
	P50, P99, Most time.Duration
}

// newHistogram returns a histogram of nanoseconds, to within a percent.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, math.MaxInt64, 2) }

func timesOf(h *hdrhistogram.Histogram) Times {
	return Times{h.TotalCount(), time.Duration(h.ValueAtPercentile(50)), time.Duration(h.ValueAtPercentile(99)), time.Duration(h.Max())}
}
