package raftlog

import "github.com/partita-go/partita/storage/replog"

// pastPositions is how many of its last positions a node remembers.
const pastPositions = 4096

// PositionAt returns where the log stood with a head, and whether this node knows: it remembers its last 4096 heads since
// Start. Nodes whose positions with one head are the same have the same entries up to there.
func (l *Log) PositionAt(head uint64) (replog.Position, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.past[head%pastPositions]
	return at, at.Head == head && at != replog.Position{}
}

// moveTo is where the replica stands now. The caller holds the lock.
func (l *Log) moveTo(at replog.Position) {
	l.at = at
	l.past[at.Head%pastPositions] = at
}
