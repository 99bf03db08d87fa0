package raftlog

import (
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// backlogBytes is how much raft has committed at most that the replica has not taken, but for what comes in one message.
const backlogBytes = 4 << 20

// backlog bounds what raft has committed and the replica has not taken, in bytes. Raft lets a thousand entries of any size
// wait for it, as on a node that catches up, and its goroutine waits then. So it waits earlier here.
type backlog struct {
	mu sync.Mutex
	// waiting are the entries that were stored and not taken.
	waiting []storedEntry
	// less has room for one: it says that one was taken.
	less chan struct{}
}

type storedEntry struct {
	index uint64
	bytes int
}

func newBacklog() *backlog { return &backlog{less: make(chan struct{}, 1)} }

// stored adds entries.
func (b *backlog) stored(es []*raft.Log) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range es {
		b.waiting = append(b.waiting, storedEntry{e.Index, len(e.Data)})
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
	select {
	case b.less <- struct{}{}:
	default:
	}
}

// deleted says that the log has some entries no more.
func (b *backlog) deleted(from, to uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(e storedEntry) bool { return from <= e.index && e.index <= to })
}

// exceeds reports whether what is committed, up to an index, is too much.
func (b *backlog) exceeds(committed uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	bytes := 0
	for _, e := range b.waiting {
		if e.index <= committed {
			bytes += e.bytes
		}
	}
	return bytes > backlogBytes
}

// awaitBacklog waits until the replica has taken nearly all that is committed. It is called by raft's own goroutine, which
// hands over what it commits: so all of that is on its way, and nothing here waits for that goroutine.
func (l *Log) awaitBacklog() {
	l.mu.Lock()
	r := l.raft
	l.mu.Unlock()
	if r == nil { // it has only begun
		return
	}
	for l.backlog.exceeds(r.CommitIndex()) {
		select {
		case <-l.backlog.less:
		case <-l.closing:
			return
		case <-l.down:
			return
		}
	}
}
