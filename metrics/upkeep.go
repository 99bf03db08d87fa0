package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What a server tells of the store that it looks after.
var (
	damageMet   = describe("partita_damage_met_total", "Lines of the log that tell of stored data that is damaged.")
	scrubs      = describe("partita_scrubs_total", "Scrubs that have ended, by what they have found.", "outcome")
	scrubFaults = describe("partita_scrub_faults", "Faults that the last scrub has found.")
	scrubEvery  = describe("partita_scrub_interval_seconds", "How long after a scrub the next one begins, 0 if there is none.")
	scrubTime   = describe("partita_scrub_timestamp_seconds", "When the last scrub began.")
)

// Scrubbed is what became of scrubs.
type Scrubbed struct {
	// Outcomes counts them by what they have found.
	Outcomes map[string]uint64
	// Last is when the last one began, zero if there was none. Looked says that it could look, and has found so many
	// Faults.
	Last   time.Time
	Looked bool
	Faults uint64
	// Every is how long after it the next one begins, 0 if there is none.
	Every time.Duration
}

// Upkeep is what looks after a store.
type Upkeep interface {
	// DamageMet returns how many lines of the log tell of damage.
	DamageMet() uint64
	Scrubbed() Scrubbed
}

// WatchUpkeep tells from now on what is found by whoever looks after a store.
func (m *Metrics) WatchUpkeep(u Upkeep) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.upkeep = u
}

// collectUpkeep tells nothing if nobody looks after a store.
func collectUpkeep(to chan<- prometheus.Metric, u Upkeep) {
	if u == nil {
		return
	}
	tell := func(d *prometheus.Desc, as prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, as, value, labels...)
	}
	tell(damageMet, prometheus.CounterValue, float64(u.DamageMet()))
	s := u.Scrubbed()
	for outcome, n := range s.Outcomes {
		tell(scrubs, prometheus.CounterValue, float64(n), outcome)
	}
	tell(scrubEvery, prometheus.GaugeValue, s.Every.Seconds())
	if !s.Last.IsZero() {
		tell(scrubTime, prometheus.GaugeValue, float64(s.Last.Unix()))
	}
	if s.Looked {
		tell(scrubFaults, prometheus.GaugeValue, float64(s.Faults))
	}
}
