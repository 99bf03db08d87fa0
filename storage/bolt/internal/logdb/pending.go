package logdb

import (
	"slices"
	"sync"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/replog"
)

// pending are the events at the end of the log that log.wal has and log.db has not. Their
// values are never changed.
type pending struct {
	mu sync.Mutex
	// first is the LSN of the first value, or of the next one if there is none.
	first  messages.LSN
	values [][]byte
	bytes  int64
	// entries are what was taken of a replicated log; the values are theirs. They come to log.db whole.
	entries []pendingEntry
	// head is that of the last entry that log.db has, taken that of the last one at all.
	head, taken uint64
	// applied is closed, and made anew, whenever the applier has tried to bring them to
	// log.db; failed says why it could not, tries how often it tried.
	applied chan struct{}
	failed  error
	tries   uint64
}

// restart says that log.db has everything before an LSN.
func (p *pending) restart(next messages.LSN) {
	p.first, p.applied = next, make(chan struct{})
}

// push adds events to the end. It returns how many bytes there were and are.
func (p *pending) push(values [][]byte) (before, after int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.add(values)
}

// add adds events to the end. The caller has the lock.
func (p *pending) add(values [][]byte) (before, after int64) {
	before = p.bytes
	p.values = append(p.values, values...)
	for _, v := range values {
		p.bytes += int64(len(v))
	}
	return before, p.bytes
}

// pendingEntry is an entry of a replicated log.
type pendingEntry struct {
	at     replog.Position
	events int
	epochs []Epoch
}

// pendingEntryBytes is about what an entry takes beside its values: one without any is to come to log.db, too.
const pendingEntryBytes = 128

// pushEntry adds an entry of a replicated log to the end. It returns how many bytes there were and are.
func (p *pending) pushEntry(e *Entry) (before, after int64) {
	p.mu.Lock()
	defer p.mu.Unlock() // the applier must not find an entry without its values
	p.taken = e.At.Head
	p.entries = append(p.entries, pendingEntry{at: e.At, events: len(e.Values), epochs: e.Epochs})
	p.bytes += pendingEntryBytes
	before, after = p.add(e.Values)
	return before - pendingEntryBytes, after
}

// skip says that log.db was given so many events at once. Nothing is pending.
func (p *pending) skip(events int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first += messages.LSN(events)
}

// all returns what there is.
func (p *pending) all() (first messages.LSN, values [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first, slices.Clip(p.values)
}

// taken is what one transaction brings to log.db.
type taken struct {
	first   messages.LSN
	values  [][]byte
	entries []pendingEntry
	// kept is up to where the directory has the replicated log with it.
	kept replog.Position
}

// take returns the first values, of about so many bytes, and the entries whose values they are.
func (p *pending) take(most int64) taken {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	if len(p.entries) > 0 {
		entries := 0
		for bytes := int64(0); entries < len(p.entries) && bytes < most; entries++ {
			for range p.entries[entries].events {
				bytes += int64(len(p.values[n]))
				n++
			}
			bytes += pendingEntryBytes
		}
		return taken{first: p.first, values: p.values[:n:n], entries: p.entries[:entries:entries]}
	}
	for bytes := int64(0); n < len(p.values) && bytes < most; n++ {
		bytes += int64(len(p.values[n]))
	}
	return taken{first: p.first, values: p.values[:n:n]}
}

// tell says what became of an attempt to bring the first values to log.db.
func (p *pending) tell(t taken, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries++
	if p.failed = err; err == nil {
		for _, v := range t.values {
			p.bytes -= int64(len(v))
		}
		// Readers may have the old list. Under load as many as were taken come again.
		rest := p.values[len(t.values):]
		p.values = append(make([][]byte, 0, min(len(p.values), 64*len(rest))), rest...)
		p.first += messages.LSN(len(t.values))
		if n := len(t.entries); n > 0 {
			p.head = t.entries[n-1].at.Head
		}
		p.entries = slices.Clone(p.entries[len(t.entries):])
		p.bytes -= pendingEntryBytes * int64(len(t.entries))
	}
	close(p.applied)
	p.applied = make(chan struct{})
}

// applied is how far the applier has come.
type applied struct {
	// next is the first LSN that log.db has not, head that of the last entry that it has of a replicated log.
	next messages.LSN
	head uint64
	// bytes is how much waits for it.
	bytes int64
	// tries is how often it has tried, failed why the last try brought nothing; more is
	// closed after the next one.
	tries  uint64
	failed error
	more   <-chan struct{}
}

func (p *pending) state() applied {
	p.mu.Lock()
	defer p.mu.Unlock()
	return applied{next: p.first, head: p.head, bytes: p.bytes, tries: p.tries, failed: p.failed, more: p.applied}
}
