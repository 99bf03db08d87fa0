package latency

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	if got, want := bucket(math.MaxInt64), buckets-1; got != want {
		t.Errorf("the largest value: got bucket %d, want %d", got, want)
	}
	// Every bucket follows the one before it, and its middle lies in it.
	for i := range buckets {
		mid := middle(i)
		if mid < 0 || bucket(uint64(mid)) != i {
			t.Fatalf("bucket %d: middle %d lies in bucket %d", i, mid, bucket(uint64(mid)))
		}
	}
	for shift := range 63 {
		for _, v := range []uint64{1<<shift - 1, 1 << shift, 1<<shift + 1} {
			if d := bucket(v+1) - bucket(v); d != 0 && d != 1 {
				t.Errorf("from %d to the next value are %d buckets", v, d)
			}
			if off := math.Abs(float64(middle(bucket(v))) - float64(v)); off > float64(v)/200 {
				t.Errorf("%d: the middle is %g away", v, off)
			}
		}
	}
}

func TestQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func() float64{
		"uniform":     func() float64 { return random.Float64() * 1e6 },
		"exponential": func() float64 { return random.ExpFloat64() * 1e6 },
		"wide":        func() float64 { return math.Exp(random.Float64() * 40) },
		"small":       func() float64 { return random.Float64() * 100 },
		"same":        func() float64 { return 123456789 },
	} {
		for _, n := range []int{1, 2, 10, 1000, 30000} {
			var h Histogram
			values := make([]time.Duration, n)
			for i := range values {
				values[i] = time.Duration(draw())
				h.Record(values[i])
			}
			slices.Sort(values)
			for _, percent := range []int{0, 1, 50, 90, 99, 100} {
				want := values[max(0, (percent*n+99)/100-1)]
				got := h.Quantile(float64(percent) / 100)
				if math.Abs(float64(got-want)) > float64(want)*0.005 {
					t.Errorf("%s, %d values, p%d: got %v, want %v", name, n, percent, got, want)
				}
			}
		}
	}
}

func TestEmptyAndOdd(t *testing.T) {
	var h Histogram
	if got, want := h.Summary(), (Summary{}); got != want {
		t.Errorf("empty: got %+v, want %+v", got, want)
	}
	h.Record(-time.Second)
	h.Record(math.MaxInt64)
	got := h.Summary()
	if got.Count != 2 || got.Min != 0 || got.P50 != 0 || got.P99 != math.MaxInt64 || got.Max != math.MaxInt64 {
		t.Errorf("got %+v", got)
	}
	for _, q := range []float64{-1, math.NaN(), math.Inf(-1)} {
		if got := h.Quantile(q); got != 0 {
			t.Errorf("quantile %v: got %v, want the smallest", q, got)
		}
	}
	if got := h.Quantile(2); got != math.MaxInt64 {
		t.Errorf("quantile 2: got %v, want the largest", got)
	}
}

func TestMerge(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var all, sum Histogram
	for part := range 5 {
		var h Histogram
		for range part * 1000 { // the first is empty
			d := time.Duration(random.ExpFloat64() * 1e7)
			h.Record(d)
			all.Record(d)
		}
		sum.Merge(&h)
	}
	all.sum, sum.sum = math.Round(all.sum), math.Round(sum.sum)
	if sum != all {
		t.Errorf("got %+v, want %+v", sum.Summary(), all.Summary())
	}
	if got, want := sum.Count(), uint64(10000); got != want {
		t.Errorf("got count %d, want %d", got, want)
	}
	if got := sum.Summary().Mean; got < 9_500*time.Microsecond || got > 10_500*time.Microsecond {
		t.Errorf("got mean %v, want about 10ms", got)
	}
}

func BenchmarkRecord(b *testing.B) {
	var h Histogram
	for d := time.Duration(1); b.Loop(); d = d*7 + 3 {
		h.Record(d & math.MaxInt64)
	}
}
