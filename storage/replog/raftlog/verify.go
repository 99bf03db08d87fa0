package raftlog

import (
	"context"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// question is one that raft asks the other nodes, for all readers who came before it was asked.
type question struct {
	answered chan struct{}
	err      error
}

// Verify implements [replog.Log].
func (l *Log) Verify(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q, err := l.join()
	if err != nil {
		return err
	}
	select {
	case <-q.answered:
		return q.err
	case <-ctx.Done():
		return ctx.Err()
	case <-l.closing:
		return storage.ErrClosed
	}
}

// join returns the next question. That which is being asked may have been answered before this caller came.
func (l *Log) join() (*question, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.mustLead(); err != nil {
		return nil, err
	}
	if l.next == nil {
		l.next = &question{answered: make(chan struct{})}
	}
	if !l.asking {
		l.asking = true
		l.routines.Go(l.ask)
	}
	return l.next, nil
}

// ask asks one question after the other, as long as somebody waits for one.
func (l *Log) ask() {
	for {
		l.mu.Lock()
		q := l.next
		l.next = nil
		l.asking = q != nil
		l.mu.Unlock()
		if q == nil {
			return
		}
		q.err = l.verify()
		close(q.answered)
	}
}

// verify returns nil if this node leads, and nobody else has led since it began.
func (l *Log) verify() error {
	l.mu.Lock()
	err := l.mustLead()
	term, raftTerm := l.state.Term, l.term
	l.mu.Unlock()
	if err != nil {
		return err
	}
	voters := l.raft.GetConfiguration().Configuration().Servers
	for mark := l.transport.acks.mark(); ; {
		if !l.enter() {
			return storage.ErrClosed
		}
		_, err := l.wait(context.Background(), l.raft.VerifyLeader())
		// In a later term of raft's somebody else may have led in between, and the replica here lacks what they wrote.
		if err != nil || l.raft.CurrentTerm() != raftTerm {
			l.resign(term)
			return replog.ErrNotOwner
		}
		if l.transport.acks.majority(voters, l.o.Node, raftTerm, mark) {
			return nil
		}
	}
}
