package raftlog

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/storage/replog"
)

// keepLimit is how long entries are kept for a node at most.
const keepLimit = time.Hour

// kept are entries that a node is going to need: those behind where the replica was. Raft forgets only what is before its last
// snapshot, and sends that to a node that lacks it: so there is none meanwhile.
type kept struct {
	// from is where the replica was, had up to where the node had the log.
	from, had uint64
	until     time.Time
}

// KeepFor lets this node keep all entries that its replica is given from now on, however many that are, until another node has
// nearly all of them, or an hour has passed, or drop is called. Whoever makes a copy of the replica for that node calls it
// before. They are kept on this node only, while it leads; the log grows by all that is written meanwhile. It is safe for
// concurrent use, and does nothing before Start, or for what is no node's name.
func (l *Log) KeepFor(id replog.NodeID) (drop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.raft == nil || checkNode(id) != nil {
		return func() {}
	}
	if l.keeps == nil {
		l.keeps = make(map[replog.NodeID]kept)
	}
	had := l.transport.acks.has(raft.ServerID(id), l.raft.CurrentTerm())
	l.keeps[id] = kept{from: l.at.Index, had: had, until: time.Now().Add(keepLimit)}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.keeps, id)
	}
}

// keepsAll reports whether nothing may be forgotten for now. The caller holds the lock.
func (l *Log) keepsAll() bool {
	if l.raft == nil || l.raft.State() != raft.Leader {
		return false
	}
	for id, k := range l.keeps {
		has := l.transport.acks.has(raft.ServerID(id), l.raft.CurrentTerm())
		if has > max(k.from, k.had) && has+l.o.Keep >= l.raft.LastIndex() || time.Now().After(k.until) {
			delete(l.keeps, id)
		}
	}
	return len(l.keeps) > 0
}
