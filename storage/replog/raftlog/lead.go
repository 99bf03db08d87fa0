package raftlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/storage/replog"
)

// watch looks at raft whenever something may have changed.
func (l *Log) watch() {
	for {
		l.look()
		select {
		case <-l.bell:
		case <-l.closing:
			return
		case <-l.down:
			return
		}
	}
}

// ring lets watch look again.
func (l *Log) ring() {
	select {
	case l.bell <- raft.Observation{}:
	default:
	}
}

// look makes of raft's state what this node says about it.
func (l *Log) look() {
	_, leader := l.raft.LeaderWithID()
	leads, term := l.raft.State() == raft.Leader, l.raft.CurrentTerm()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.state.Stopped != nil {
		return
	}
	now := l.state
	now.Leader = replog.NodeID(leader)
	if now.Term != 0 && (!leads || term != l.term) {
		now.Term = 0
	}
	l.become(now)
	if leads && now.Term == 0 && !l.beginning && !l.handing {
		l.beginning = true
		l.routines.Go(l.begin)
	}
}

// begin lets this node lead as soon as its replica has applied what stands in the log.
func (l *Log) begin() {
	for {
		term := l.raft.CurrentTerm()
		index, err := l.barrier()
		// Raft's term goes up when it leads anew: if it is the same now, the barrier was in it.
		if err == nil && l.raft.State() == raft.Leader && l.raft.CurrentTerm() == term {
			l.lead(index, term)
			return
		}
		if errors.Is(err, raft.ErrLeadershipTransferInProgress) && l.pause() {
			continue
		}
		l.lead(0, 0)
		return
	}
}

// barrier writes an entry of raft's own, and returns its index when all before it is applied here.
func (l *Log) barrier() (index uint64, err error) {
	if !l.enter() {
		return 0, errClosing
	}
	f := l.raft.Barrier(l.o.Failover)
	if _, err := l.wait(context.Background(), f); err != nil {
		return 0, err
	}
	return f.(raft.IndexFuture).Index(), nil //nolint:errcheck // raft's futures of entries are
}

// pause waits a little until raft is asked again. It returns false if the log ends meanwhile.
func (l *Log) pause() bool {
	t := time.NewTimer(l.o.Failover / 20)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.closing:
	case <-l.down:
	}
	return false
}

// lead ends begin: the node leads behind an index, in a term of raft's, or not if the index is 0.
func (l *Log) lead(index, term uint64) {
	l.mu.Lock()
	l.beginning = false
	if index != 0 && !l.closed && l.state.Stopped == nil && !l.handing {
		now := l.state
		now.Term, now.Leader = index, l.o.Node
		l.term = term
		l.become(now)
	}
	l.mu.Unlock()
	// Raft may have lost it meanwhile, or won it again.
	l.ring()
}

// resign ends a leadership if it is the one that there is. If raft still leads, it begins anew: behind all that is under
// way.
func (l *Log) resign(term uint64) {
	l.mu.Lock()
	if l.state.Term == term {
		now := l.state
		now.Term = 0
		l.become(now)
	}
	l.mu.Unlock()
	l.ring()
}

// follows reports whether a node is in the log that this one leads in a term of raft's. It does not while the leadership
// begins or is handed over.
func (l *Log) follows(id raft.ServerID, term uint64) bool {
	l.mu.Lock()
	leads := l.state.Term != 0 && l.term == term
	l.mu.Unlock()
	return leads && l.member(replog.NodeID(id)) != nil
}

// Transfer implements [replog.Log]. It waits for the append that is under way, and lets no other one begin. ErrAway if the
// other node has not answered.
func (l *Log) Transfer(ctx context.Context, to replog.NodeID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.take(ctx); err != nil {
		return err
	}
	defer l.leave()
	if err := l.leads(); err != nil {
		return err
	}
	// Nobody could write until raft has given it up.
	if l.transport.absent.has(raft.ServerID(to)) != nil {
		return fmt.Errorf("%w: node %q", ErrAway, to)
	}
	return l.giveTo(ctx, to)
}

// giveTo lets another node lead, or this one lead anew.
func (l *Log) giveTo(ctx context.Context, to replog.NodeID) error {
	if err := l.handOver(); err != nil {
		return err
	}
	defer l.handedOver()
	_, err := l.wait(ctx, l.raft.LeadershipTransferToServer(raft.ServerID(to), address(to)))
	if err != nil && l.raft.State() == raft.Leader {
		return err
	}
	return nil
}

// handOver ends the leadership for good or until handedOver.
func (l *Log) handOver() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.mustLead(); err != nil {
		return err
	}
	l.asked.Add(1)
	l.handing = true
	now := l.state
	now.Term = 0
	l.become(now)
	return nil
}

func (l *Log) handedOver() {
	l.mu.Lock()
	l.handing = false
	l.mu.Unlock()
	l.ring()
}
