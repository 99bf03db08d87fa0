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
		r.shards[i].latencies = hdrhistogram.New(int64(fastest), int64(slowest), digits)
		r.shards[i].perSecond = make([]uint64, seconds(longest))
	}
	return r
}

// record notes a call that ended in the window.
func (r *recorder) record(caller int, began, ended time.Time) error {
	s := &r.shards[caller%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.latencies.RecordValue(int64(ended.Sub(began))); err != nil {
		return fmt.Errorf("latency: got %v, want at most %v: %w", ended.Sub(began), slowest, err)
	}
	s.perSecond[min(int(ended.Sub(r.start)/time.Second), len(s.perSecond)-1)]++
	return nil
}

// seconds counts the seconds of a window, the last one may be short.
func seconds(window time.Duration) int { return int((window + time.Second - 1) / time.Second) }

// Latencies are the percentiles of the calls that ended in the window.
type Latencies struct {
	Count               uint64
	P50, P99, P999, Max time.Duration
	// PerSecond is how many calls ended in each second of the window.
	PerSecond []uint64
}

// latencies merges what was recorded in a window.
func (r *recorder) latencies(window time.Duration) Latencies {
	all := hdrhistogram.New(int64(fastest), int64(slowest), digits)
	l := Latencies{PerSecond: make([]uint64, seconds(window))}
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		all.Merge(s.latencies)
		for second := range l.PerSecond {
			l.PerSecond[second] += s.perSecond[second]
		}
		s.mu.Unlock()
	}
	l.Count = uint64(all.TotalCount())
	l.P50 = time.Duration(all.ValueAtQuantile(50))
	l.P99 = time.Duration(all.ValueAtQuantile(99))
	l.P999 = time.Duration(all.ValueAtQuantile(99.9))
	l.Max = time.Duration(all.Max())
	return l
}
