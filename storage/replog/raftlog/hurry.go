package raftlog

import (
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// Raft looks at random moments whether its leader is silent: between one and three failovers after the last word. A node
// refuses its vote as long as it has not found out itself, and whoever has asked too early asks again one to two failovers
// later. So all nodes look here as soon as it can be so, one shortly after the other: the last one finds the others without a
// leader. If it lacks what another one has, or two ask at once, they ask again after a half to a whole failover.

// watchSilence lets raft look at the right moment, and has its times as they were again when there is a leader.
func (l *Log) watchSilence() {
	for !l.over() {
		wait := l.o.Failover / 20
		if left, known := l.patience(); known {
			l.hurry(left <= 0)
			wait = max(wait, left)
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-l.closing:
		case <-l.down:
		}
		t.Stop()
	}
}

// over says that raft is not looked after any more.
func (l *Log) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed || l.state.Stopped != nil
}

// patience returns how long the leader may still be silent, and whether this node knows one.
func (l *Log) patience() (left time.Duration, known bool) {
	_, leader := l.raft.LeaderWithID()
	if leader == "" {
		return 0, false
	}
	if l.raft.State() != raft.Follower {
		return l.o.Failover / 4, true
	}
	wait := l.o.Failover + time.Duration(l.rank(leader))*l.o.Failover/10
	return wait - time.Since(l.raft.LastContact()), true
}

// rank returns how many others look before this node does when a leader is silent.
func (l *Log) rank(leader raft.ServerID) int {
	var voters []raft.ServerID
	for _, s := range l.raft.GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter && s.ID != leader {
			voters = append(voters, s.ID)
		}
	}
	slices.Sort(voters)
	return max(0, slices.Index(voters, raft.ServerID(l.o.Node)))
}

// hurry sets how long raft is silent before it asks for votes, and again. Raft looks at once if that is less than before.
func (l *Log) hurry(hurried bool) {
	now := l.raft.ReloadableConfig()
	c := now
	c.HeartbeatTimeout, c.ElectionTimeout = l.o.Failover, l.o.Failover
	if hurried {
		c.HeartbeatTimeout, c.ElectionTimeout = l.o.Failover/2, l.o.Failover/2
	}
	if c == now {
		return
	}
	if hurried {
		l.o.Logger.Info("the leader is silent", lines(l.o, nil)...)
	}
	if err := l.raft.ReloadConfig(c); err != nil {
		l.o.Logger.Error("raft takes no other times", lines(l.o, err)...)
	}
}
