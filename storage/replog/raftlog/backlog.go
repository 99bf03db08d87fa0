package raftlog

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

const (
	// backlogBytes is how much raft has committed at most that the replica has not taken, but for one message more.
	backlogBytes = 16 << 20
	// backlogEntries is how many entries that are. Raft has room for 128 messages on their way to the replica; then its own
	// goroutine waits, and with it each vote.
	backlogEntries = 64
)

// backlog bounds what raft has committed and the replica has not taken. Raft itself lets a thousand entries of any size wait
// on a node that catches up.
type backlog struct {
	mu sync.Mutex
	// waiting are the entries that were stored and not taken.
	waiting []storedEntry
	// less has room for one: it says that there is less.
	less chan struct{}
}

type storedEntry struct {
	index uint64
	bytes int
}

func newBacklog() *backlog { return &backlog{less: make(chan struct{}, 1)} }

// stored adds entries: those for the replica, for there may be any number of raft's own, as of elections, that it never takes.
func (b *backlog) stored(es []*raft.Log) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range es {
		if e.Type == raft.LogCommand {
			b.waiting = append(b.waiting, storedEntry{e.Index, len(e.Data)})
		}
	}
}

// taken says that the replica has the entries up to an index.
func (b *backlog) taken(index uint64) {
	b.mu.Lock()
	n := 0
	for n < len(b.waiting) && b.waiting[n].index <= index {
		n++
	}
	b.waiting = b.waiting[n:]
	b.mu.Unlock()
	b.ring()
}

// deleted says that the log has some entries no more.
func (b *backlog) deleted(from, to uint64) {
	b.mu.Lock()
	b.waiting = slices.DeleteFunc(b.waiting, func(e storedEntry) bool { return from <= e.index && e.index <= to })
	b.mu.Unlock()
	b.ring()
}

func (b *backlog) ring() {
	select {
	case b.less <- struct{}{}:
	default:
	}
}

// exceeds reports whether what is committed, up to an index, is too much.
func (b *backlog) exceeds(committed uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	bytes, count := 0, 0
	for _, e := range b.waiting {
		if e.index <= committed {
			bytes, count = bytes+e.bytes, count+1
		}
	}
	return bytes > backlogBytes || count > backlogEntries
}

// admission stands between the transport and raft: what brings entries waits there while the replica lacks too much. All
// else goes on to raft, which votes meanwhile.
type admission struct {
	// to is where raft takes messages from.
	to chan raft.RPC
	// holds is the message that waits. Only admit changes it.
	holds atomic.Pointer[raft.RPC]
}

func entriesOf(m *raft.RPC) []*raft.Log {
	if r, ok := m.Command.(*raft.AppendEntriesRequest); ok {
		return r.Entries
	}
	return nil
}

// hold lets a message wait. Of two the one of the newer leader does, or the newer one, and the other is answered.
func (a *admission) hold(m *raft.RPC) {
	was := a.holds.Load()
	if was != nil && termOf(was) > termOf(m) {
		was, m = m, was
	}
	a.holds.Store(m)
	if was != nil {
		was.Respond(nil, errLater)
	}
}

func termOf(m *raft.RPC) uint64 { return m.Command.(*raft.AppendEntriesRequest).Term } //nolint:errcheck // it has entries

// end answers the message that waits.
func (a *admission) end() {
	if m := a.holds.Swap(nil); m != nil {
		m.Respond(nil, raft.ErrTransportShutdown)
	}
}

// admit hands messages from the other nodes to raft, until the transport is closed.
func (l *Log) admit(t *transport) {
	defer t.admission.end()
	from := t.Transport.Consumer()
	for {
		var m *raft.RPC
		var less <-chan struct{} // nobody is woken by each entry for nothing
		if t.admission.holds.Load() != nil {
			less = l.backlog.less
		}
		select {
		case next := <-from:
			m = &next
			if len(entriesOf(m)) > 0 {
				t.admission.hold(m)
				m = nil
			}
		case <-less:
		case <-t.closed:
			return
		}
		if m == nil && !l.lacksTooMuch() {
			m = t.admission.holds.Swap(nil)
		}
		if m == nil {
			continue
		}
		select {
		case t.admission.to <- *m:
		case <-t.closed:
			m.Respond(nil, raft.ErrTransportShutdown)
			return
		}
	}
}

// lacksTooMuch reports whether the replica lacks so much of what raft has committed that no more may come. All of that is on
// its way to the replica.
func (l *Log) lacksTooMuch() bool {
	l.mu.Lock()
	r := l.raft
	l.mu.Unlock()
	return r != nil && l.backlog.exceeds(r.CommitIndex())
}
