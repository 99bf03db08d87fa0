package raftlog

import (
	"math"
	"time"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/storage/replog"
)

// keepLimit is how long entries are kept for a node at most.
const keepLimit = time.Hour

// kept are entries that a node is going to need.
type kept struct {
	// from is the one before the first of them, which raft looks at, too; had is up to where the node had the log when they were
	// to be kept.
	from, had uint64
	until     time.Time
}

// KeepFor lets this node keep all entries that its replica is given from now on, however many that are, until another node has
// some of them, or an hour has passed: whoever makes a copy of the replica for that node calls it before. They are kept on this
// node only, while it leads. It is safe for concurrent use, and does nothing before Start.
func (l *Log) KeepFor(id replog.NodeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.raft == nil {
		return
	}
	if l.keeps == nil {
		l.keeps = make(map[replog.NodeID]kept)
	}
	had := l.transport.acks.has(raft.ServerID(id), l.raft.CurrentTerm())
	l.keeps[id] = kept{from: l.at.Index, had: had, until: time.Now().Add(keepLimit)}
}

// mayForget returns up to which entry the log may be forgotten for those that are kept.
func (l *Log) mayForget() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := uint64(math.MaxUint64)
	if l.raft == nil || l.raft.State() != raft.Leader {
		return last
	}
	for id, k := range l.keeps {
		has := l.transport.acks.has(raft.ServerID(id), l.raft.CurrentTerm())
		if has > k.from && has > k.had || time.Now().After(k.until) {
			delete(l.keeps, id)
			continue
		}
		last = min(last, max(k.from, 1)-1)
	}
	return last
}
