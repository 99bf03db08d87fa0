package raftlog

import (
	"sync"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/storage/replog"
)

// acks remembers which nodes have said that this one leads. Raft takes any answer that comes in after VerifyLeader was
// called, also one that was given before: a process that was paused for seconds finds such answers in its sockets, and would
// believe that it still leads. So only those count that were asked for after the readers came. No clock is in it.
type acks struct {
	mu sync.Mutex
	// marks counts the calls of mark.
	marks uint64
	of    map[raft.ServerID]ack
}

// ack is the last answer of a node: in which term of raft's, and how many marks there were when it was asked for; and up to
// which index of raft's it has the log.
type ack struct{ term, asked, has uint64 }

// mark begins: what is asked for from now on counts.
func (a *acks) mark() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.marks++
	return a.marks
}

// now is what a request is asked for with.
func (a *acks) now() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.marks
}

// add notes an answer. has is 0 if it says nothing of the log.
func (a *acks) add(id raft.ServerID, term, asked, has uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.of[id]
	if term < was.term {
		return
	}
	if term > was.term {
		was = ack{}
	}
	if a.of == nil {
		a.of = make(map[raft.ServerID]ack)
	}
	a.of[id] = ack{term: term, asked: max(asked, was.asked), has: max(has, was.has)}
}

// has returns up to which index of raft's a node has the log, as it has said in a term, 0 if it has not.
func (a *acks) has(id raft.ServerID, term uint64) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if was := a.of[id]; was.term == term {
		return was.has
	}
	return 0
}

// majority says whether most voters have said so in a term, asked since a mark. This node itself says so.
func (a *acks) majority(servers []raft.Server, self replog.NodeID, term, mark uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	voters, count := 0, 0
	for _, s := range servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if got := a.of[s.ID]; s.ID == raft.ServerID(self) || got.term == term && got.asked >= mark {
			count++
		}
	}
	return count > voters/2
}
