package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// What one of several nodes tells of itself.
var (
	nodeLeads   = describe("partita_node_leads", "Whether the node leads.")
	nodeHears   = describe("partita_node_knows_leader", "Whether the node knows who leads.")
	nodeHead    = describe("partita_node_log_head", "How many entries of the log the node has applied.")
	nodeBehind  = describe("partita_node_log_behind", "How many entries most nodes have that the node has not applied, as far as it knows.")
	nodeStopped = describe("partita_node_stopped", "Whether the node takes no part in the log any more.")
)

// Node is where one of several nodes stands.
type Node struct {
	Leads, KnowsLeader, Stopped bool
	Head, Behind                uint64
}

// WatchNode tells from now on where the node stands.
func (m *Metrics) WatchNode(node func() Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.node = node
}

// collectNode tells nothing where there is one node.
func collectNode(to chan<- prometheus.Metric, node func() Node) {
	if node == nil {
		return
	}
	n := node()
	for d, value := range map[*prometheus.Desc]float64{
		nodeLeads: oneIf(n.Leads), nodeHears: oneIf(n.KnowsLeader), nodeStopped: oneIf(n.Stopped),
		nodeHead: float64(n.Head), nodeBehind: float64(n.Behind),
	} {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
