package load

import (
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are kept to three digits between these.
const (
	fastest = time.Microsecond
	slowest = 10 * time.Minute
	digits  = 3
)

// shards keep callers from waiting for each other to record.
const shards = 8

// recorder keeps the latencies of the calls that ended in a window, in bounded
// memory.
type recorder struct {
	start  time.Time
	shards [shards]shard
}

type shard struct {
	mu        sync.Mutex
	latencies *hdrhistogram.Histogram
	perSecond []uint64
	_         [64]byte // on a cache line of its own
}

// newRecorder returns a recorder for a window that is at most so long.
func newRecorder(start time.Time, longest time.Duration) *recorder {
	r := &recorder{start: start}
	for i := range r.shards {
		r.shards[i].latencies = NewHistogram()
		r.shards[i].perSecond = make([]uint64, seconds(longest))
	}
	return r
}

// NewHistogram returns a histogram of times, kept in bounded memory.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(fastest), int64(slowest), digits)
}

// record notes a call that ended in the window.
func (r *recorder) record(caller int, began, ended time.Time) error {
	s := &r.shards[caller%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := Record(s.latencies, ended.Sub(began)); err != nil {
		return err
	}
	s.perSecond[min(int(ended.Sub(r.start)/time.Second), len(s.perSecond)-1)]++
	return nil
}

// Record notes a time.
func Record(h *hdrhistogram.Histogram, d time.Duration) error {
	if err := h.RecordValue(int64(d)); err != nil {
		return fmt.Errorf("latency: got %v, want at most %v: %w", d, slowest, err)
	}
	return nil
}

// seconds counts the seconds of a window, the last one may be short.
func seconds(window time.Duration) int { return int((window + time.Second - 1) / time.Second) }

// Latencies are percentiles of times, such as those of the calls that ended in a window.
type Latencies struct {
	Count               uint64
	P50, P99, P999, Max time.Duration
	// PerSecond is how many calls ended in each second of the window.
	PerSecond []uint64
}

// latencies merges what was recorded in a window.
func (r *recorder) latencies(window time.Duration) Latencies {
	all := NewHistogram()
	perSecond := make([]uint64, seconds(window))
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		all.Merge(s.latencies)
		for second := range perSecond {
			perSecond[second] += s.perSecond[second]
		}
		s.mu.Unlock()
	}
	l := Percentiles(all)
	l.PerSecond = perSecond
	return l
}

// Percentiles returns the percentiles of a histogram.
func Percentiles(h *hdrhistogram.Histogram) Latencies {
	return Latencies{
		Count: uint64(h.TotalCount()),
		P50:   time.Duration(h.ValueAtQuantile(50)),
		P99:   time.Duration(h.ValueAtQuantile(99)),
		P999:  time.Duration(h.ValueAtQuantile(99.9)),
		Max:   time.Duration(h.Max()),
	}
}
