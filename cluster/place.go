package cluster

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/storage/replog"
)

const (
	// placeEvery is how often a node that leads a shard looks whether another one had better do.
	placeEvery = time.Second
	// steady is for how long that must have kept up.
	steady = 5 * time.Second
	// placeTries is how often a node lets the preferred one lead within placeTime: if that comes to nothing, it stays.
	placeTries = 5
	placeTime  = time.Hour
	// nearby is how many entries one may lack that keeps up: some are always under way.
	nearby = 256
)

// preferred returns which of some nodes is to lead a shard, the same on all nodes: each has as many shards as the others, or
// one more. It is "" if there are no nodes.
func preferred(nodes []replog.NodeID, shard int) (best replog.NodeID) {
	if len(nodes) == 0 {
		return ""
	}
	has := make(map[replog.NodeID]int)
	for k := range shard + 1 {
		best = slices.MinFunc(nodes, func(a, b replog.NodeID) int {
			return cmp.Or(cmp.Compare(has[a], has[b]), cmp.Compare(weight(b, k), weight(a, k)), cmp.Compare(a, b))
		})
		has[best]++
	}
	return best
}

// weight says how much a shard prefers a node to others: it draws.
func weight(id replog.NodeID, shard int) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %s", shard, id)
	return h.Sum64()
}

// place lets the preferred node lead, when it has kept up for some time, until the term is over. One shard has no preferred
// node: nobody would gain by it.
func (s *Shard) place(term context.Context) {
	if len(s.node.shards) == 1 {
		return
	}
	every := time.NewTicker(placeEvery)
	defer every.Stop()
	for since := time.Now(); ; {
		select {
		case <-every.C:
		case <-term.Done():
			return
		}
		id, ready := s.better(term)
		if !ready {
			since = time.Now()
			continue
		}
		if time.Since(since) < steady || !s.mayPlace() {
			continue
		}
		s.o.Logger.Info("the preferred node is to lead", zap.String("to", string(id)))
		// The hand-over ends the term first: it must not end with that.
		s.handOver(s.node.running, []replog.NodeID{id})
		since = time.Now()
	}
}

// preferred returns the node that is to lead, as this one knows the members; "" if it knows none, or there is one shard.
func (s *Shard) preferred() replog.NodeID {
	if len(s.node.shards) == 1 {
		return ""
	}
	return preferred(s.voters(), s.index)
}

// voters are the members that vote, as this node knows them.
func (s *Shard) voters() (all []replog.NodeID) {
	for _, m := range s.part().log.Members() {
		if m.Votes {
			all = append(all, m.Node)
		}
	}
	return all
}

// better returns the preferred node, if that is another one, and whether it is to lead now: it could, and nobody wanted another
// one to lead, as far as any node knows.
func (s *Shard) better(ctx context.Context) (id replog.NodeID, ready bool) {
	if id = s.preferred(); id == "" || id == s.o.Node {
		return id, false
	}
	head := s.part().log.Standing().Applied.Head
	for _, m := range s.askOthers(ctx) {
		if m.HandedOver {
			return id, false
		}
		if m.Node == id {
			ready = s.canLead(&m, head)
		}
	}
	return id, ready
}

// mayPlace reports whether the preferred node may be let lead once more, and counts that.
func (s *Shard) mayPlace() bool {
	if time.Since(s.placed) > placeTime {
		s.placed, s.places = time.Now(), 0
	}
	s.places++
	return s.places <= placeTries
}
