package memory

import (
	"context"
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// Log is one node's side of a [Cluster]. Cluster.Log makes it.
type Log struct {
	c *Cluster
	m *member

	replica replog.Replica
	// at is where the replica is, next the place of the entry that it has not seen yet.
	at      replog.Position
	next    int
	state   replog.Leadership
	changed chan struct{}
	// waiting are the appends under way, by the index of their entries.
	waiting map[uint64]*answer
	closed  bool
	// ended is closed when nothing is given to the replica any more.
	ended chan struct{}
}

var _ replog.Log = (*Log)(nil)

// answer is what becomes of an entry here.
type answer struct {
	known bool
	err   error
}

// Start implements [replog.Log].
func (l *Log) Start(from replog.Position, r replog.Replica) error {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	switch {
	case l.replica != nil || l.m.log != nil:
		return fmt.Errorf("node %s: %w", l.m.id, storage.ErrInUse)
	case from.Index < l.m.trimmed:
		return fmt.Errorf("%w: it is at %d, the log begins after %d", replog.ErrBehind, from.Index, l.m.trimmed)
	case from.Index > uint64(len(l.c.entries)):
		return fmt.Errorf("%w: it is at %d, the log ends at %d", replog.ErrAhead, from.Index, len(l.c.entries))
	}
	// Like engines do, it gives again what the replica may have.
	l.replica, l.at, l.next, l.waiting = r, from, int(l.m.trimmed), make(map[uint64]*answer)
	l.m.log = l
	l.c.tell()
	go l.run()
	return nil
}

// Append implements [replog.Log].
func (l *Log) Append(ctx context.Context, prev uint64, body []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(body) > replog.MaxEntry {
		return fmt.Errorf("%w: got %d bytes, want at most %d", replog.ErrTooLarge, len(body), replog.MaxEntry)
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if err := l.mustLead(); err != nil {
		return err
	}
	if prev != l.at.Head {
		return fmt.Errorf("%w: got head %d, it is %d", replog.ErrMoved, prev, l.at.Head)
	}
	entry := l.at.Seal(l.c.shard, body)
	fate := l.m.fate()
	if l.m.cut || !l.c.quorum() {
		fate = Lost
	}
	switch fate {
	case Kept:
		l.c.write(entry)
	case Late:
		l.c.late = append(l.c.late, entry)
	case Lost:
	default:
		return l.write(ctx, entry, fate == Delayed)
	}
	return l.doubt(nil)
}

// write writes an entry, and waits for the answer, or until that is released.
func (l *Log) write(ctx context.Context, entry []byte, delayed bool) error {
	released := l.c.released
	a := &answer{}
	l.waiting[l.c.write(entry)] = a
	l.c.ring()
	answered := func() bool { return a.known && (!delayed || l.c.released > released) }
	err := l.c.await(ctx, func() bool { return answered() || l.closed || l.m.cut || l.state.Stopped != nil })
	if answered() {
		return a.err
	}
	return l.doubt(err)
}

// fate returns what is to become of the next append.
func (m *member) fate() (f Fate) {
	if len(m.fates) > 0 {
		f, m.fates = m.fates[0], m.fates[1:]
	}
	return f
}

// mustLead returns nil if the node may write and read, as far as it knows.
func (l *Log) mustLead() error {
	switch {
	case l.closed:
		return storage.ErrClosed
	case l.state.Stopped != nil:
		return fmt.Errorf("%w: its replica has stopped: %w", replog.ErrNotOwner, l.state.Stopped)
	case l.state.Term == 0:
		return replog.ErrNotOwner
	}
	return nil
}

// doubt ends the leadership, and says that nobody knows what became of an entry.
func (l *Log) doubt(cause error) error {
	l.resign()
	if cause == nil {
		return messages.ErrOutcomeUnknown
	}
	return fmt.Errorf("%w: %w", messages.ErrOutcomeUnknown, cause)
}

// resign ends the leadership, if there is one.
func (l *Log) resign() {
	if l.c.leader == l.m {
		l.c.leader = nil
		l.c.tell()
	}
	now := l.state
	if now.Term != 0 {
		now.Term, now.Leader = 0, ""
	}
	l.become(now)
	l.c.ring()
}

// Verify implements [replog.Log].
func (l *Log) Verify(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if err := l.mustLead(); err != nil {
		return err
	}
	if l.m.cut || !l.c.quorum() {
		l.resign()
		return replog.ErrNotOwner
	}
	return nil
}

// Leadership implements [replog.Log].
func (l *Log) Leadership() (replog.Leadership, <-chan struct{}) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	return l.state, l.changed
}

// Transfer implements [replog.Log].
func (l *Log) Transfer(ctx context.Context, to replog.NodeID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if err := l.mustLead(); err != nil {
		return err
	}
	if l.m.cut {
		return errNoQuorum
	}
	return l.c.lead(l.c.members[to])
}

// Trim implements [replog.Log].
func (l *Log) Trim(index uint64) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	l.m.trimmed = max(l.m.trimmed, index)
}

// Close implements [replog.Log].
func (l *Log) Close() error {
	l.c.mu.Lock()
	first := !l.closed
	l.closed = true
	started := l.replica != nil
	if started && first {
		l.resign()
		l.m.log = nil
		l.c.ring()
	}
	l.c.mu.Unlock()
	if started {
		<-l.ended
	}
	return nil
}

// become tells a new state, if it is one. The caller holds the lock.
func (l *Log) become(now replog.Leadership) {
	if was := l.state; now.Term != was.Term || now.Leader != was.Leader || (now.Stopped == nil) != (was.Stopped == nil) {
		l.state = now
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

// run gives the replica what it has not yet.
func (l *Log) run() {
	defer close(l.ended)
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	for {
		_ = l.c.await(context.Background(), func() bool { return l.closed || l.mayApply() })
		if l.closed {
			return
		}
		e := l.c.entries[l.next]
		if e.bytes == nil {
			l.begin(e.term)
		} else if !l.apply(e.bytes) {
			return
		}
		l.next++
		l.c.ring()
	}
}

func (l *Log) mayApply() bool { return !l.m.cut && !l.m.held && l.next < len(l.c.entries) }

// begin lets the node lead if it is the one who began a term there.
func (l *Log) begin(term uint64) {
	if l.c.leader == l.m && l.c.term == term {
		now := l.state
		now.Term, now.Leader = term, l.m.id
		l.become(now)
	}
}

// apply gives an entry to the replica if it is accepted, without the lock. It returns false if the replica has stopped.
func (l *Log) apply(entry []byte) bool {
	index := uint64(l.next) + 1
	at := l.at
	body, verdict, err := at.Take(l.c.shard, index, entry)
	if err == nil && verdict == replog.Accepted {
		l.c.mu.Unlock()
		err = l.replica.Apply(at, body)
		l.c.mu.Lock()
	}
	if err != nil {
		l.resign()
		now := l.state
		now.Stopped = err
		l.become(now)
		l.c.ring()
		return false
	}
	l.at = at
	if a := l.waiting[index]; a != nil {
		delete(l.waiting, index)
		a.known = true
		if verdict != replog.Accepted {
			a.err = fmt.Errorf("%w: head %d has another entry behind it", replog.ErrMoved, at.Head-1)
		}
	}
	return true
}

// await waits until there is so, or ctx ends. The caller holds the lock, but not meanwhile.
func (c *Cluster) await(ctx context.Context, so func() bool) error {
	for !so() {
		bell := c.bell
		c.mu.Unlock()
		select {
		case <-bell:
		case <-ctx.Done():
		}
		c.mu.Lock()
		if err := ctx.Err(); err != nil && !so() {
			return err
		}
	}
	return nil
}
