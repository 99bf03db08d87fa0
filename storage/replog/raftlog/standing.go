package raftlog

import (
	"time"

	"github.com/partita-go/partita/storage/replog"
)

// Standing is how far a node is.
type Standing struct {
	// Applied is where the replica here stands: behind the last accepted entry that it has.
	Applied replog.Position
	// Behind is how many entries of raft's a majority has, as far as this node knows, that are not applied here.
	Behind uint64
	// Heard is when this node heard the leader last, zero if it has not heard one, or leads.
	Heard time.Time
}

// Standing returns how far this node is. It is zero before Start.
func (l *Log) Standing() Standing {
	l.mu.Lock()
	s, r := Standing{Applied: l.at}, l.raft
	l.mu.Unlock()
	if r != nil {
		applied, committed := r.AppliedIndex(), r.CommitIndex()
		s.Behind, s.Heard = committed-min(applied, committed), r.LastContact()
	}
	return s
}
