package metrics

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// What one of several nodes tells of itself.
var (
	nodeLeads   = describe("partita_node_leads", "Whether the node leads.", "shard")
	nodeHears   = describe("partita_node_knows_leader", "Whether the node knows who leads.", "shard")
	nodeHead    = describe("partita_node_log_head", "How many entries of the log the node has applied.", "shard")
	nodeBehind  = describe("partita_node_log_behind", "How many entries most nodes have that the node has not applied, as far as it knows.", "shard")
	nodeStopped = describe("partita_node_stopped", "Whether the node takes no part in the log any more.", "shard")
)

// Node is where one of several nodes stands in a shard.
type Node struct {
	// Shard is its number.
	Shard int

	Leads, KnowsLeader, Stopped bool
	Head, Behind                uint64
}

// WatchNode tells from now on where the node stands, in each shard; with nil it tells that no more.
func (m *Metrics) WatchNode(shards ...func() Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.node = slices.DeleteFunc(slices.Clone(shards), func(of func() Node) bool { return of == nil })
}

// collectNode tells nothing where there is one node.
func collectNode(to chan<- prometheus.Metric, shards []func() Node) {
	for _, of := range shards {
		n := of()
		for d, value := range map[*prometheus.Desc]float64{
			nodeLeads: oneIf(n.Leads), nodeHears: oneIf(n.KnowsLeader), nodeStopped: oneIf(n.Stopped),
			nodeHead: float64(n.Head), nodeBehind: float64(n.Behind),
		} {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, strconv.Itoa(n.Shard))
		}
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
