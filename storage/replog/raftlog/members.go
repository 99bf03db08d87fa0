package raftlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// Member is a node of a log.
type Member struct {
	Node replog.NodeID
	// Votes says that it counts for a majority. One that was added does not until it has caught up.
	Votes bool
	// Has is the index up to which it has the log, as the owner knows it. 0 if it has said nothing to this node.
	Has uint64
}

// Members returns the nodes of the log, as this node knows them, in the order of their names. nil before Start. A node that
// is not among them may have been removed: it does not vote, and is told nothing.
func (l *Log) Members() []Member {
	l.mu.Lock()
	r := l.raft
	l.mu.Unlock()
	if r == nil {
		return nil
	}
	term := r.CurrentTerm()
	var all []Member
	for _, s := range r.GetConfiguration().Configuration().Servers {
		m := Member{Node: replog.NodeID(s.ID), Votes: s.Suffrage == raft.Voter, Has: l.transport.acks.has(s.ID, term)}
		if m.Node == l.o.Node {
			m.Has = r.LastIndex()
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

// member returns a node of the log, nil if it is none.
func (l *Log) member(id replog.NodeID) *Member {
	all := l.Members()
	if i := slices.IndexFunc(all, func(m Member) bool { return m.Node == id }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Add adds a node to the log, which is started there, from a directory that [Join] has made. It gets what it lacks, and votes
// when it has caught up; then Add returns nil. If it returns before, the node stays as one that does not vote, unless it was
// not added at all: whoever adds it again goes on. One node is added or removed at a time.
//
// ErrNotOwner; ErrMember if it votes already; ErrOptions; ErrOutcomeUnknown; ErrClosed; the context's error.
func (l *Log) Add(ctx context.Context, id replog.NodeID) error {
	if err := checkNode(id); err != nil {
		return err
	}
	m, err := l.find(ctx, id)
	if err != nil {
		return err
	}
	if m != nil && m.Votes {
		return fmt.Errorf("%w: node %q is in it", ErrMember, id)
	}
	if m == nil {
		err := l.configure(ctx, func() raft.IndexFuture { return l.raft.AddNonvoter(raft.ServerID(id), address(id), 0, l.o.Failover) })
		if err != nil {
			return err
		}
	}
	if err := l.awaitCaughtUp(ctx, id); err != nil {
		return err
	}
	return l.configure(ctx, func() raft.IndexFuture { return l.raft.AddVoter(raft.ServerID(id), address(id), 0, l.o.Failover) })
}

// Remove takes a node out of the log: it votes no more, and is told nothing more. It waits until most of those that stay have
// answered, since nothing could be written without them. The owner cannot be removed: hand the log over first.
//
// ErrNotOwner; ErrMember; ErrOutcomeUnknown; ErrClosed; the context's error.
func (l *Log) Remove(ctx context.Context, id replog.NodeID) error {
	m, err := l.find(ctx, id)
	switch {
	case err != nil:
		return err
	case m == nil:
		return fmt.Errorf("%w: node %q is not in it", ErrMember, id)
	case id == l.o.Node:
		return fmt.Errorf("%w: node %q owns it", ErrMember, id)
	}
	if err := l.awaitStaying(ctx, id); err != nil {
		return err
	}
	return l.configure(ctx, func() raft.IndexFuture { return l.raft.RemoveServer(raft.ServerID(id), 0, l.o.Failover) })
}

// find returns a node of the log, nil if it is none, if this node leads.
func (l *Log) find(ctx context.Context, id replog.NodeID) (*Member, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := l.leads(); err != nil {
		return nil, err
	}
	return l.member(id), nil
}

func (l *Log) leads() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mustLead()
}

// configure changes who is in the log.
func (l *Log) configure(ctx context.Context, change func() raft.IndexFuture) error {
	if err := l.leads(); err != nil {
		return err
	}
	if !l.enter() {
		return storage.ErrClosed
	}
	known, err := l.wait(ctx, change())
	switch {
	case err == nil:
		return nil
	case known && (errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrEnqueueTimeout)):
		return fmt.Errorf("%w: %w", replog.ErrNotOwner, err)
	}
	return fmt.Errorf("%w: members of the log: %w", messages.ErrOutcomeUnknown, err)
}

// awaitCaughtUp waits until a node lacks less than travels together.
func (l *Log) awaitCaughtUp(ctx context.Context, id replog.NodeID) error {
	return l.poll(ctx, func() (bool, error) {
		m := l.member(id)
		if m == nil {
			return false, fmt.Errorf("%w: node %q was removed", ErrMember, id)
		}
		return m.Has > 0 && m.Has+maxAppendEntries > l.raft.LastIndex(), nil
	})
}

// awaitStaying waits until most of the voters have answered, without one.
func (l *Log) awaitStaying(ctx context.Context, without replog.NodeID) error {
	mark := l.transport.acks.mark()
	return l.poll(ctx, func() (bool, error) {
		staying := slices.DeleteFunc(
			slices.Clone(l.raft.GetConfiguration().Configuration().Servers),
			func(s raft.Server) bool { return s.ID == raft.ServerID(without) },
		)
		return l.transport.acks.majority(staying, l.o.Node, l.raft.CurrentTerm(), mark), nil
	})
}

// poll asks now and then whether something is so, as long as this node leads.
func (l *Log) poll(ctx context.Context, so func() (bool, error)) error {
	for {
		if err := l.leads(); err != nil {
			return err
		}
		if done, err := so(); done || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		l.pause()
	}
}
