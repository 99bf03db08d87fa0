package raftlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// Append implements [replog.Log].
func (l *Log) Append(ctx context.Context, prev uint64, body []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(body) > replog.MaxEntry {
		return fmt.Errorf("%w: got %d bytes, want at most %d", replog.ErrTooLarge, len(body), replog.MaxEntry)
	}
	if err := l.take(ctx); err != nil {
		return err
	}
	defer l.leave()
	term, entry, err := l.seal(prev, body)
	if err != nil {
		return err
	}
	// Until raft has it, or has not within the time, nobody may give it up: it would come behind what begins anew.
	f := l.raft.Apply(entry, l.o.Failover)
	known, err := l.wait(ctx, f)
	if !known {
		return l.doubt(term, err)
	}
	return l.outcome(term, err, f.Response)
}

// take waits for this caller's turn.
func (l *Log) take(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.closing:
		return storage.ErrClosed
	}
}

func (l *Log) leave() { <-l.turn }

// seal makes the entry of a body, if the node leads and prev is the head, and announces it to asked.
func (l *Log) seal(prev uint64, body []byte) (term uint64, entry []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.mustLead(); err != nil {
		return 0, nil, err
	}
	if prev != l.at.Head {
		return 0, nil, fmt.Errorf("%w: got head %d, it is %d", replog.ErrMoved, prev, l.at.Head)
	}
	l.asked.Add(1)
	return l.state.Term, l.at.Seal(l.o.Shard, body), nil
}

// outcome is what raft's answer means. response is what the machine has made of the entry, if err is nil.
func (l *Log) outcome(term uint64, err error, response func() any) error {
	switch {
	case err == nil:
		return l.applied(term, response())
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrEnqueueTimeout),
		errors.Is(err, raft.ErrLeadershipTransferInProgress):
		// Raft has refused it before it went into the log.
		l.resign(term)
		return fmt.Errorf("%w: %w", replog.ErrNotOwner, err)
	}
	// ErrLeadershipLost, ErrRaftShutdown, or the disk could not store it: the others may have it, or get it.
	return l.doubt(term, err)
}

// applied is what the machine's response to a committed entry means.
func (l *Log) applied(term uint64, response any) error {
	switch r := response.(type) {
	case replog.Verdict:
		if r == replog.Accepted {
			return nil
		}
		return fmt.Errorf("%w: another entry stands there", replog.ErrMoved)
	case error:
		return l.doubt(term, r)
	}
	return l.doubt(term, fmt.Errorf("unexpected response %v", response))
}

// doubt ends the leadership, and says that nobody knows what became of an entry.
func (l *Log) doubt(term uint64, cause error) error {
	l.resign(term)
	return fmt.Errorf("%w: %w", messages.ErrOutcomeUnknown, cause)
}
