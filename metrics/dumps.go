package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// What dumps of messages tell.
var (
	emittedDumps   = describe("partita_emitted_dumps_total", "Lines of dumps that were handed to the file, or wait for that.", "actor_group")
	limitedDumps   = describe("partita_limited_dumps_total", "Lines of dumps that were left out, above the group's rate.", "actor_group")
	lostDumps      = describe("partita_lost_dumps_total", "Lines of dumps that had no room in the buffers.", "actor_group")
	unwrittenDumps = describe("partita_unwritten_dumps_total", "Lines of dumps that were handed to the file, which did not take them.")
)

// Dumps is what writes messages of actors; the Writer of package dumps is one.
type Dumps interface {
	// Counts tells of each group of actors what became of its lines, and returns how many of the emitted ones the file
	// did not take.
	Counts(tell func(group string, emitted, limited, lost uint64)) (unwritten uint64)
}

// WatchDumps tells what becomes of dumps from now on, until forget is called, which is harmless when called again. No
// two that are watched at the same time may have dumped the same group.
func (m *Metrics) WatchDumps(d Dumps) (forget func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	own := &d
	m.dumps = append(m.dumps, own)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.dumps = slices.DeleteFunc(m.dumps, func(o *Dumps) bool { return o == own })
	}
}

func collectDumps(to chan<- prometheus.Metric, all []*Dumps) {
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	var unwritten uint64
	for _, d := range all {
		unwritten += (*d).Counts(func(group string, emitted, limited, lost uint64) {
			counter(emittedDumps, emitted, group)
			counter(limitedDumps, limited, group)
			counter(lostDumps, lost, group)
		})
	}
	if len(all) > 0 {
		counter(unwrittenDumps, unwritten)
	}
}
