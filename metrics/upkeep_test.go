package metrics_test

import (
	"testing"
	"time"

	"github.com/partita-go/partita/metrics"
)

// TestUpkeep: what is found by whoever looks after a store is told, what nobody has looked for is not.
func TestUpkeep(t *testing.T) {
	r := newRig(t, metrics.Options{})
	g := r.gather()
	g.want(7, "partita_damage_met_total")
	g.want(2, "partita_scrubs_total", "outcome=sound")
	g.want(1, "partita_scrubs_total", "outcome=faulty")
	g.want(5, "partita_scrub_faults")
	g.want(1000, "partita_scrub_timestamp_seconds")
	g.want(3600, "partita_scrub_interval_seconds")
	r.metrics.WatchUpkeep(nobodyLooked{})
	g = r.gather()
	g.want(0, "partita_damage_met_total")
	for _, name := range []string{"partita_scrub_faults", "partita_scrub_timestamp_seconds"} {
		if _, there := g.all[name]; there {
			t.Errorf("%s is there", name)
		}
	}
	r.metrics.WatchUpkeep(couldNotLook{})
	g = r.gather()
	g.want(1000, "partita_scrub_timestamp_seconds")
	if _, there := g.all["partita_scrub_faults"]; there {
		t.Error("faults are told of who could not look")
	}
}

type nobodyLooked struct{}

func (nobodyLooked) DamageMet() uint64          { return 0 }
func (nobodyLooked) Scrubbed() metrics.Scrubbed { return metrics.Scrubbed{} }

type couldNotLook struct{ nobodyLooked }

func (couldNotLook) Scrubbed() metrics.Scrubbed { return metrics.Scrubbed{Last: time.Unix(1000, 0)} }

// TestNode: what a node tells of itself.
func TestNode(t *testing.T) {
	r := newRig(t, metrics.Options{})
	r.metrics.WatchNode(func() metrics.Node { return metrics.Node{Leads: true, Head: 7, Behind: 2} })
	g := r.gather()
	g.want(1, "partita_node_leads")
	g.want(0, "partita_node_knows_leader")
	g.want(7, "partita_node_log_head")
	g.want(2, "partita_node_log_behind")
	g.want(0, "partita_node_stopped")
	r.metrics.WatchNode(nil)
	if _, there := r.gather().all["partita_node_leads"]; there {
		t.Error("a server alone tells of nodes")
	}
}
