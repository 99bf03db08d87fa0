package bolt

import (
	"cmp"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/numbers"
	"github.com/partita-go/partita/storage/bolt/internal/schema"
)

// flushEvent is an event on its way into state.db.
type flushEvent struct {
	r *flushRequest
	e *entry
	o messages.PLogOffset
}

// takeEntries copies what the tail has of the events that the flush covers. Only the flusher
// drops entries, so they stay while it lets go of the lock.
func (r *flushRequest) takeEntries() {
	p := r.partition
	r.entries = make([]entry, 0, r.to-r.from)
	for o := r.from; o < r.to; {
		p.mu.RLock()
		first, end := o, min(r.to, o+trimStep)
		for ; o < end; o++ {
			r.entries = append(r.entries, *p.tail.at(o))
		}
		r.numbers = p.tail.numbers.Copy(r.numbers, p.tail.at(first).numbers, p.tail.numbersEnd(end-1))
		r.records = p.tail.records.Copy(r.records, p.tail.at(first).records, p.tail.recordsEnd(end-1))
		p.mu.RUnlock()
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for i := p.tail.ids.First; i < p.tail.ids.End && p.tail.ids.At(i).offset < r.to; i++ {
		if id := p.tail.ids.At(i); id.offset >= r.from {
			r.ids = append(r.ids, *id)
		}
	}
	from, _ := zonesFrom(p.tail.zones, r.from)
	to, _ := zonesFrom(p.tail.zones, r.to)
	r.zones = slices.Clone(p.tail.zones[from:to])
}

// numbersOf and recordsOf are what an event has given out and written.
func (f *flushEvent) numbersOf() []messages.SequenceNumber {
	return itemsOf(f, f.r.numbers, func(e *entry) uint64 { return e.numbers })
}

func (f *flushEvent) recordsOf() []recordRef {
	return itemsOf(f, f.r.records, func(e *entry) uint64 { return e.records })
}

// itemsOf returns an event's part of what its flush has copied; begin says where an entry's begins in the tail.
func itemsOf[T any](f *flushEvent, items []T, begin func(*entry) uint64) []T {
	base := begin(&f.r.entries[0])
	end := base + uint64(len(items))
	if i := int(f.o + 1 - f.r.from); i < len(f.r.entries) {
		end = begin(&f.r.entries[i])
	}
	return items[begin(f.e)-base : end-base]
}

// rowBytes is how much data the event's records have.
func (f *flushEvent) rowBytes() (n int64) {
	for _, rec := range f.recordsOf() {
		n += int64(rec.size)
	}
	return n
}

// collect orders the events of all flushes by workspace, and those of one as they are in the log. What a flush that was
// begun before has written already is not among them.
func (p *projection) collect() {
	n := 0
	for _, r := range p.group {
		n += len(r.entries)
	}
	p.events = make([]flushEvent, 0, n)
	for _, r := range p.group {
		if r.refusal != nil {
			continue
		}
		for i := range r.entries {
			if e := &r.entries[i]; !r.begun || e.ws > r.through {
				p.events = append(p.events, flushEvent{r: r, e: e, o: r.from + messages.PLogOffset(i)})
			}
		}
	}
	slices.SortFunc(p.events, func(a, b flushEvent) int {
		return cmp.Or(cmp.Compare(a.e.ws, b.e.ws), cmp.Compare(a.e.lsn, b.e.lsn))
	})
}

// workspaceEvents returns how many of the events are of the first one's workspace.
func workspaceEvents(events []flushEvent) int {
	n := 1
	for n < len(events) && events[n].e.ws == events[0].e.ws {
		n++
	}
	return n
}

// nextRange returns how many of the events the next transaction takes: those of whole workspaces.
func (o *shares) nextRange(events []flushEvent) int {
	n, bytes := 0, int64(0)
	for n < len(events) && n < o.rangeEvents && bytes < o.rangeBytes {
		bytes += o.periodBytes[events[n].e.kind]
		for end := n + workspaceEvents(events[n:]); n < end; n++ {
			bytes += events[n].rowBytes()
			if o.periodBytes != nil {
				bytes += events[n].periodBytes()
			}
		}
	}
	return n
}

// olderBytes is about what a transaction has in memory of a period that it writes to bucket index.
const olderBytes = 64

// periodBytes is what the event's periods take, if each is an older one.
func (f *flushEvent) periodBytes() (n int64) {
	var before messages.SequencePeriod
	for _, given := range f.numbersOf() {
		if at := given.SequencePeriod(); at.Period != 0 && at != before {
			n, before = n+olderBytes, at
		}
	}
	return n
}

// numbers returns the last numbers that events of one workspace have given out, in memory that the next call uses again.
func (p *projection) numbers(events []flushEvent) numbers.Last {
	last := p.last[:0]
	for i := range events {
		f := &events[i]
		if f.e.wlog == 1 {
			last.Raise(numbers.OfKind(f.e.kind))
		}
		last.Raise(messages.SequenceNumber{Seq: messages.SeqWLogOffset, Number: messages.Number(f.e.wlog)})
		if i == 0 || f.e.kind != events[i-1].e.kind {
			p.kind = p.s.schema.Kinds[f.e.kind]
		}
		for _, n := range f.numbersOf() {
			// A number below the initial value, a singleton's say, says nothing about
			// the sequence.
			if seq := schema.Sequence(p.kind, n.Seq); seq != nil && n.Number >= seq.Initial && seq.Restarts() == (n.Period != 0) {
				last.Raise(n)
			}
		}
	}
	p.last = last
	return last
}
