package raftlog

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/storage/replog"
)

// machine takes what raft has committed, and gives the accepted entries to the replica. Raft calls it from one goroutine.
type machine struct{ l *Log }

// Apply implements [raft.FSM]. It responds with a [replog.Verdict], or with the error that has stopped the replica.
func (m *machine) Apply(e *raft.Log) any {
	l := m.l
	defer l.backlog.taken(e.Index)
	l.mu.Lock()
	at, stopped := l.at, l.state.Stopped
	l.mu.Unlock()
	if stopped != nil {
		return stopped
	}
	body, verdict, err := at.Take(l.o.Shard, e.Index, e.Data)
	if err == nil && verdict == replog.Accepted {
		err = l.replica.Apply(at, body)
	}
	if err != nil {
		l.stop(err)
		return err
	}
	l.mu.Lock()
	l.moveTo(at)
	l.mu.Unlock()
	return verdict
}

// Snapshot implements [raft.FSM].
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	m.l.mu.Lock()
	defer m.l.mu.Unlock()
	if m.l.keepsAll() {
		return nil, raft.ErrNothingNewToSnapshot
	}
	return &snapshot{l: m.l, at: m.l.at}, m.l.state.Stopped
}

// Restore implements [raft.FSM]: the leader does not have the entries any more that this node lacks, and sends where its
// own begin. That is no use unless the replica has those before.
func (m *machine) Restore(r io.ReadCloser) error {
	to, err := readPosition(r)
	if err == nil {
		m.l.mu.Lock()
		at := m.l.at
		m.l.mu.Unlock()
		if at.Head < to.Head {
			err = fmt.Errorf("%w: it has %d entries, the leader's log begins after %d", replog.ErrBehind, at.Head, to.Head)
		}
	}
	if err != nil {
		m.l.stop(err)
	}
	return errors.Join(err, r.Close())
}

// snapshot is a position, without data: the replica has those. It is complete when they are on its disk, and raft forgets
// what is before it then.
type snapshot struct {
	l  *Log
	at replog.Position
}

// Persist implements [raft.FSMSnapshot]. It waits until the replica's disk has what is before.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	for {
		s.l.mu.Lock()
		trimmed, grown := s.l.trimmed, s.l.grown
		s.l.mu.Unlock()
		if trimmed >= s.at.Index {
			break
		}
		select {
		case <-grown:
		case <-s.l.closing:
			return errClosing
		case <-s.l.down:
			return errClosing
		}
	}
	if _, err := sink.Write(positionBytes(s.at)); err != nil {
		return err
	}
	return sink.Close()
}

// Release implements [raft.FSMSnapshot].
func (s *snapshot) Release() {}
