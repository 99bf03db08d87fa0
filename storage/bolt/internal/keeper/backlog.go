package keeper

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
	"github.com/partita-go/partita/storage/replog"
)

// kept is what an entry of a replicated log changes, and where the log stands before and with it.
type kept struct {
	before, at replog.Position
	changes    []subsdb.Change
	// ctx ends when the entry is dropped: log.db will not have it.
	ctx  context.Context
	drop context.CancelFunc
	// taken was the head of the last entry with changes before.
	taken uint64
}

func newKept(before, at replog.Position, changes []subsdb.Change) *kept {
	e := &kept{before: before, at: at, changes: changes}
	e.ctx, e.drop = context.WithCancel(context.Background())
	return e
}

// bytes is about what it takes.
func (e *kept) bytes() (n int) {
	for i := range e.changes {
		n += e.changes[i].Size()
	}
	return n
}

// backlog is what a replicated log has brought and the file has not yet. It is safe for concurrent use.
type backlog struct {
	// wake has room for one. rest wakes the scribe, too; stop is closed when nothing more comes.
	wake chan struct{}
	rest *time.Timer
	stop chan struct{}

	mu      sync.Mutex
	entries []*kept
	bytes   int
	// taken is the head of the last entry with changes, written that of the last one that the file has.
	taken, written uint64
	// more is closed, and made anew, whenever the scribe has tried to write or an entry is dropped; failed says why it could
	// not, tries how often it tried.
	more   chan struct{}
	failed error
	tries  uint64
}

// newBacklog is empty: the file has everything up to a head.
func newBacklog(head uint64) *backlog {
	b := &backlog{
		wake: make(chan struct{}, 1), stop: make(chan struct{}), taken: head, written: head, more: make(chan struct{}),
	}
	b.rest = time.AfterFunc(scribeRest, b.hurry)
	b.rest.Stop()
	return b
}

// hurry lets the scribe write at once.
func (b *backlog) hurry() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// full reports whether as much waits as may.
func (b *backlog) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes >= maxBacklog
}

// push adds an entry, unless it was there.
func (b *backlog) push(e *kept) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.at.Head <= b.taken {
		return
	}
	e.taken = b.taken
	b.entries, b.taken = append(b.entries, e), e.at.Head
	b.bytes += e.bytes()
	switch {
	case b.bytes >= scribeBytes:
		b.hurry()
	case len(b.entries) == 1:
		b.rest.Reset(scribeRest)
	}
}

// drop takes back the last entry, if it has a head, and lets nobody wait for it.
func (b *backlog) drop(head uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.entries) - 1
	if n < 0 || b.entries[n].at.Head != head {
		return
	}
	e := b.entries[n]
	b.entries, b.taken = slices.Clip(b.entries[:n]), e.taken
	b.bytes -= e.bytes()
	e.drop()
	b.wakeAll()
}

// last returns the head of the last entry with changes.
func (b *backlog) last() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken
}

// first returns where the log stands before the first entry that waits.
func (b *backlog) first() (before replog.Position, waits bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.entries) == 0 {
		return before, false
	}
	return b.entries[0].before, true
}

// all returns what waits.
func (b *backlog) all() []*kept {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clip(b.entries)
}

// tell says what became of an attempt to write the first entries.
func (b *backlog) tell(all []*kept, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tries++
	if b.failed = err; err != nil {
		b.rest.Reset(scribeRest) // there may be room by then
	} else {
		for _, e := range all {
			b.bytes -= e.bytes()
		}
		b.entries, b.written = b.entries[len(all):], all[len(all)-1].at.Head
		if len(b.entries) > 0 {
			b.rest.Reset(scribeRest)
		}
	}
	b.wakeAll()
}

// wakeAll lets whoever waits look again. The caller has the lock.
func (b *backlog) wakeAll() {
	close(b.more)
	b.more = make(chan struct{})
}

// written is how far the scribe has come.
type written struct {
	written, taken, tries uint64
	failed                error
	// more is closed after the next attempt.
	more <-chan struct{}
}

func (b *backlog) state() written {
	b.mu.Lock()
	defer b.mu.Unlock()
	return written{written: b.written, taken: b.taken, tries: b.tries, failed: b.failed, more: b.more}
}
