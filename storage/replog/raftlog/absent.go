package raftlog

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// absent are nodes that have not answered. Raft sends such a node entries after a time that doubles with each failure, up to
// 10 s, although its heartbeats know sooner that it is back: so what is not a heartbeat waits for one.
type absent struct {
	mu sync.Mutex
	// back is closed when the node answers.
	back map[raft.ServerID]chan struct{}
}

// isHeartbeat reports whether a request is one, as raft's receivers tell.
func isHeartbeat(args *raft.AppendEntriesRequest) bool {
	return args.PrevLogEntry == 0 && args.PrevLogTerm == 0 && len(args.Entries) == 0 && args.LeaderCommitIndex == 0
}

// lookEvery is how often whoever waits looks whether that is in vain.
const lookEvery = 50 * time.Millisecond

// await waits until a node answers, if it has not, or until the log is closed, or until that is in vain: raft counts what
// fails then. Raft cannot stop what waits here, nor can a transfer go on.
func (a *absent) await(id raft.ServerID, closed <-chan struct{}, vain func() bool) {
	back := a.has(id)
	if back == nil {
		return
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for !vain() {
		select {
		case <-back:
			return
		case <-closed:
			return
		case <-look.C:
		}
	}
}

// has returns what is closed when a node answers, nil if it has answered.
func (a *absent) has(id raft.ServerID) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.back[id]
}

// note notes whether a node has answered.
func (a *absent) note(id raft.ServerID, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	back := a.back[id]
	switch {
	case err == nil && back != nil:
		close(back)
		delete(a.back, id)
	case err != nil && back == nil:
		if a.back == nil {
			a.back = make(map[raft.ServerID]chan struct{})
		}
		a.back[id] = make(chan struct{})
	}
}
