// Package latency keeps latencies in a histogram of fixed size and tells their
// percentiles, to within half a percent.
package latency

import (
	"math"
	"math/bits"
	"time"
)

// The buckets are log-linear: each power of two is cut into 128 of equal width.
// For a latency of v nanoseconds, with shift = max(0, bits.Len64(v) - 8),
//
//	bucket(v) = shift*128 + v>>shift
//
// so that up to 255 ns each bucket holds one value, and above
//
//	bucket 256 … 383   256 ns … 511 ns    2 ns wide
//	       384 … 511   512 ns … 1023 ns   4 ns wide
//	       …
//
// A bucket at v is at most v/128 wide, and a value in it lies at most half of
// that from its middle: 0.4 percent.
const (
	subBits    = 7
	subBuckets = 1 << subBits
	// buckets is one more than the bucket of math.MaxInt64.
	buckets = (63-subBits-1)*subBuckets + 2*subBuckets
)

// Histogram counts latencies. Its zero value is empty and ready. It takes about
// 57 KiB however many it counts. It is not safe for concurrent use: give each
// goroutine its own and merge them.
type Histogram struct {
	counts   [buckets]uint64
	count    uint64
	sum      float64
	min, max time.Duration
}

func bucket(v uint64) int {
	shift := max(0, bits.Len64(v)-subBits-1)
	return shift*subBuckets + int(v>>shift)
}

// middle returns the middle of the values of a bucket, rounded down.
func middle(bucket int) time.Duration {
	if bucket < 2*subBuckets {
		return time.Duration(bucket)
	}
	shift := bucket/subBuckets - 1
	lowest := uint64(bucket-shift*subBuckets) << shift
	return time.Duration(lowest + (1<<shift-1)/2)
}

// Record counts a latency. A negative one counts as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	if h.count == 0 || d < h.min {
		h.min = d
	}
	h.max = max(h.max, d)
	h.counts[bucket(uint64(d))]++
	h.count++
	h.sum += float64(d)
}

// Merge adds what other has counted.
func (h *Histogram) Merge(other *Histogram) {
	if other.count == 0 {
		return
	}
	if h.count == 0 || other.min < h.min {
		h.min = other.min
	}
	h.max = max(h.max, other.max)
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.count += other.count
	h.sum += other.sum
}

// Count returns how many latencies were counted.
func (h *Histogram) Count() uint64 { return h.count }

// Quantile returns the latency that the share q of all latencies does not
// exceed: the one at place ceil(q*count) in their order, to within half a
// percent. 0 gives the smallest and 1 the largest, exactly. It returns 0 if
// nothing was counted.
func (h *Histogram) Quantile(q float64) time.Duration {
	// The product is a little off where it should be whole.
	place := math.Ceil(q*float64(h.count) - 1e-6)
	switch {
	case h.count == 0:
		return 0
	case !(place > 1):
		return h.min
	case place >= float64(h.count):
		return h.max
	}
	left := uint64(place)
	for i, n := range h.counts {
		if n >= left {
			return min(max(middle(i), h.min), h.max)
		}
		left -= n
	}
	return h.max
}

// Summary is what people ask of latencies.
type Summary struct {
	Count                               uint64
	Min, Mean, P50, P90, P99, P999, Max time.Duration
}

// Summary returns the usual percentiles.
func (h *Histogram) Summary() Summary {
	s := Summary{
		Count: h.count,
		Min:   h.min,
		P50:   h.Quantile(0.5),
		P90:   h.Quantile(0.9),
		P99:   h.Quantile(0.99),
		P999:  h.Quantile(0.999),
		Max:   h.max,
	}
	if h.count > 0 {
		s.Mean = time.Duration(h.sum / float64(h.count))
	}
	return s
}
