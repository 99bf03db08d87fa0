package soak

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// sample is what is seen at one moment, and of the time since the sample before. It is a
// line of the file that the plot is drawn from.
type sample struct {
	// Seconds since the soak began.
	Seconds float64 `json:"seconds"`
	// Rest says that everything is closed: of what was open nothing may be left.
	Rest  bool `json:"rest"`
	Store int  `json:"store"`

	Events       float64   `json:"events_per_second"`
	Appends      latencies `json:"appends"`
	Transactions latencies `json:"transactions"`
	// Deployments and Hangs (calls that hung) are those since the sample before.
	Deployments int64 `json:"deployments"`
	Hangs       int64 `json:"hangs"`

	// Live is what the heap holds after a garbage collection; it is the memory that is
	// judged. The files are mapped: Resident grows with them, Anonymous does not.
	Live       int64 `json:"heap_live"`
	HeapInUse  int64 `json:"heap_in_use"`
	Resident   int64 `json:"resident"`
	Anonymous  int64 `json:"resident_anonymous"`
	Goroutines int64 `json:"goroutines"`
	// Actors are those that the actor system knows, without the supervisor of each
	// AppParts, which it keeps for good. They are counted at rest.
	Actors int64 `json:"actors"`
	// Descriptors are the open files, -1 where nobody tells.
	Descriptors int64 `json:"file_descriptors"`
	LogSize     int64 `json:"log_size"`
	StateSize   int64 `json:"state_size"`
}

// latencies are percentiles in microseconds.
type latencies struct {
	Count int64 `json:"count"`
	P50   int64 `json:"p50_us"`
	P99   int64 `json:"p99_us"`
	P999  int64 `json:"p999_us"`
}

// shards keep clients from waiting for each other to record.
const shards = 8

// recorder keeps latencies, in bounded memory. Its zero value is ready.
type recorder struct {
	shards [shards]struct {
		mu        sync.Mutex
		latencies *hdrhistogram.Histogram
	}
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, (10 * time.Minute).Microseconds(), 3)
}

func (r *recorder) record(client uint64, d time.Duration) {
	s := &r.shards[client%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latencies == nil {
		s.latencies = newHistogram()
	}
	// Nothing takes longer than its context lets it.
	_ = s.latencies.RecordValue(max(1, d.Microseconds()))
}

// take returns what was recorded since it was called last.
func (r *recorder) take() latencies {
	all := newHistogram()
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		if s.latencies != nil {
			all.Merge(s.latencies)
			s.latencies.Reset()
		}
		s.mu.Unlock()
	}
	return latencies{
		Count: all.TotalCount(), P50: all.ValueAtQuantile(50), P99: all.ValueAtQuantile(99), P999: all.ValueAtQuantile(99.9),
	}
}

// startSampling takes samples until the returned function is called.
func (l *load) startSampling(t *testing.T) (stop func()) {
	t.Helper()
	over := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		ticker := time.NewTicker(l.plan.sample)
		defer ticker.Stop()
		l.appends.take() // what ended after the last sample of the store before
		l.transactions.take()
		last, before := time.Now(), l.tally()
		for {
			select {
			case <-ticker.C:
				now := l.tally()
				elapsed := time.Since(last).Seconds()
				last = time.Now()
				s := look()
				s.Seconds, s.Store = time.Since(l.run.began).Seconds(), l.store
				s.Events = float64(now[acked]-before[acked]) / elapsed
				s.Deployments, s.Hangs = now[deployments]-before[deployments], now[hangs]-before[hangs]
				s.Appends, s.Transactions = l.appends.take(), l.transactions.take()
				s.LogSize, s.StateSize = sizes(l.dir)
				before = now
				l.keep(t, s)
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		sampling.Wait()
	}
}

func (r *run) tally() (all [counters]int64) {
	for c := range all {
		all[c] = r.counts[c].Load()
	}
	return all
}

// rest takes a sample when everything is closed. Goroutines that are ending are given
// time to.
func (r *run) rest(t *testing.T, store int) {
	t.Helper()
	runtime.GC() // a pool lets go of what it holds at the second one
	s := look()
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until) && r.more(s); s = look() {
		wait(t.Context(), 50*time.Millisecond)
	}
	s.Seconds, s.Rest, s.Store = time.Since(r.began).Seconds(), true, store
	s.Actors = registered() - r.counts[starts].Load()
	r.keep(t, s)
}

// more reports whether more is open than at the first rest.
func (r *run) more(s sample) bool {
	for i := range r.samples {
		if first := &r.samples[i]; first.Rest {
			return s.Goroutines > first.Goroutines || s.Descriptors > first.Descriptors
		}
	}
	return false
}

func (r *run) keep(t *testing.T, s sample) {
	t.Helper()
	r.samples = append(r.samples, s)
	if r.out != nil {
		if err := r.out.Encode(s); err != nil {
			t.Error(err)
		}
	}
}

// look looks at what may grow.
func look() sample {
	runtime.GC()
	values := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(values)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	s := sample{
		Live: int64(values[0].Value.Uint64()), HeapInUse: int64(memory.HeapInuse),
		Goroutines: int64(runtime.NumGoroutine()), Descriptors: -1,
	}
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		s.Resident, s.Anonymous = kilobytes(status, "VmRSS:"), kilobytes(status, "RssAnon:")
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.Descriptors = int64(len(open)) - 1 // without that of the directory
	}
	return s
}

// kilobytes returns a value of /proc/PID/status in bytes, 0 if it has none.
func kilobytes(status []byte, name string) int64 {
	_, rest, _ := bytes.Cut(status, []byte(name))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// sizes returns how large the files of a store are, 0 for one that is not there.
func sizes(dir string) (logSize, stateSize int64) {
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	return size("log.db"), size("state.db")
}
