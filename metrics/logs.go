package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/partita-go/partita/logs"
)

// What became of log lines.
var (
	logLabels     = []string{"actor_group", "level"}
	emittedEvents = describe("partita_emitted_events_total", "Log lines that were written.", logLabels...)
	limitedEvents = describe("partita_limited_events_total", "Log lines that were left out, above the limit of their group and level.", logLabels...)
	lostEvents    = describe("partita_lost_events_total", "Log lines that could not be written.", logLabels...)
)

// collectLogs tells what became of log lines.
func collectLogs(to chan<- prometheus.Metric, l *logs.Logs) {
	if l == nil {
		return
	}
	for _, s := range l.Stats() {
		for desc, n := range map[*prometheus.Desc]uint64{emittedEvents: s.Emitted, limitedEvents: s.Limited, lostEvents: s.Lost} {
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), s.Group, s.Level.String())
		}
	}
}
