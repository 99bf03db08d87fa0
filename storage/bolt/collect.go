package bolt

import (
	"slices"
	"unsafe"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/numbers"
	"github.com/partita-go/partita/storage/bolt/internal/schema"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// flushEvent is an event on its way into state.db.
type flushEvent struct {
	r *flushRequest
	// ws and lsn are the entry's. Like records and size they stand here because entries are spread over the memory, in the
	// order of workspaces.
	ws  messages.WSID
	lsn messages.LSN
	// at is the entry's index among those of the request.
	at uint32
	// records is how many it has written, size how much data they have.
	records, size uint32
	// rows is where the data of its records begins among the rows that were read, one behind it; 0 if they were not.
	rows uint32
}

// entry is the event's in the tail.
func (f *flushEvent) entry() *tail.Entry { return &f.r.entries[f.at] }

// offset is the event's in the log of its partition.
func (f *flushEvent) offset() messages.PLogOffset { return f.r.from + messages.PLogOffset(f.at) }

// flushTables is the memory of flushes, which serves again for the next ones. Nothing in it leads into a file.
type flushTables struct {
	// entries, numbers and records are copies of tails.
	entries []tail.Entry
	numbers []messages.SequenceNumber
	records []tail.Record
	// events are by workspace.
	events []flushEvent
	// keys are what is sorted, and spare what that takes.
	keys, spare []sortKey
	// kept are the last numbers of workspaces, in their order, and keptOf whose they are.
	kept   []messages.SequenceNumber
	keptOf []keptNumbers
	// These serve for each workspace again.
	writes []recordWrite
	read   []statedb.ReadRow
	last   numbers.Last
	// arena holds the encoded values of a transaction.
	arena boltfile.ByteArena
	// rows has the data of records that was read back. It is bounded by its own share.
	rows []byte
}

// keptNumbers says whose last numbers lie where among those that were kept, and whether nothing is stored of the
// workspace.
type keptNumbers struct {
	ws         messages.WSID
	first, end int
	isNew      bool
}

// roomIn returns an empty slice with room for n items at the end of a table.
func roomIn[T any](table *[]T, n uint64) []T {
	at := len(*table)
	*table = slices.Grow(*table, int(n))[:at+int(n)]
	return (*table)[at:at:len(*table)]
}

// reset makes the tables empty. Larger ones than the limit, in bytes, are let go; first the arena.
func (t *flushTables) reset(limit int64) {
	bytes := sizeOf(t.entries) + sizeOf(t.numbers) + sizeOf(t.records) + sizeOf(t.events) + sizeOf(t.keys) + sizeOf(t.spare) +
		sizeOf(t.kept) + sizeOf(t.keptOf) + sizeOf(t.writes) + sizeOf(t.read) + sizeOf(t.last)
	if bytes > limit {
		*t = flushTables{}
		return
	}
	if bytes+t.arena.Size() > limit {
		t.arena = boltfile.ByteArena{}
	}
	clear(t.events[:cap(t.events)]) // the requests are their callers'
	clear(t.writes[:cap(t.writes)])
	clear(t.read[:cap(t.read)])
	*t = flushTables{
		entries: t.entries[:0], numbers: t.numbers[:0], records: t.records[:0], events: t.events[:0], keys: t.keys[:0],
		spare: t.spare[:0], kept: t.kept[:0], keptOf: t.keptOf[:0], writes: t.writes[:0], read: t.read[:0], last: t.last[:0],
		rows: t.rows[:0], arena: t.arena,
	}
}

// sizeOf is how many bytes a table takes.
func sizeOf[T any](table []T) int64 {
	var item T
	return int64(cap(table)) * int64(unsafe.Sizeof(item))
}

// takeEntries copies what the tail has of the events that the flush covers, into the tables. Only the flusher drops
// entries, so they stay while it lets go of the lock.
func (r *flushRequest) takeEntries(t *flushTables) {
	p := r.partition
	p.mu.RLock()
	first := *p.tail.At(r.from)
	numbers, records := p.tail.NumbersEnd(r.to-1)-first.Numbers, p.tail.RecordsEnd(r.to-1)-first.Records
	p.mu.RUnlock()
	r.entries = roomIn(&t.entries, uint64(r.to-r.from))
	r.numbers, r.records = roomIn(&t.numbers, numbers), roomIn(&t.records, records)
	for o := r.from; o < r.to; {
		p.mu.RLock()
		first, end := p.tail.At(o), min(r.to, o+tail.TrimStep)
		r.entries = p.tail.Entries.Copy(r.entries, uint64(o), uint64(end))
		r.numbers = p.tail.Numbers.Copy(r.numbers, first.Numbers, p.tail.NumbersEnd(end-1))
		r.records = p.tail.Records.Copy(r.records, first.Records, p.tail.RecordsEnd(end-1))
		p.mu.RUnlock()
		o = end
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for i := p.tail.IDs.First; i < p.tail.IDs.End && p.tail.IDs.At(i).Offset < r.to; i++ {
		if id := p.tail.IDs.At(i); id.Offset >= r.from {
			r.ids = append(r.ids, *id)
		}
	}
	from, _ := tail.ZonesFrom(p.tail.Zones, r.from)
	to, _ := tail.ZonesFrom(p.tail.Zones, r.to)
	r.zones = slices.Clone(p.tail.Zones[from:to])
}

// numbersOf and recordsOf are what an event has given out and written.
func (f *flushEvent) numbersOf() []messages.SequenceNumber {
	e := f.entry()
	items := f.r.numbers[e.Numbers-f.r.entries[0].Numbers:]
	if next := f.next(); next != nil {
		items = items[:next.Numbers-e.Numbers]
	}
	return items
}

func (f *flushEvent) recordsOf() []tail.Record {
	first := f.entry().Records - f.r.entries[0].Records
	return f.r.records[first : first+uint64(f.records)]
}

// next is the entry behind the event's in the flush, nil if it is the last one.
func (f *flushEvent) next() *tail.Entry {
	if i := int(f.at) + 1; i < len(f.r.entries) {
		return &f.r.entries[i]
	}
	return nil
}

// collect orders the events of all flushes by workspace, and those of one as they are in the log. What a flush that was
// begun before has written already is not among them.
func (p *projection) collect() {
	n := 0
	for _, r := range p.group {
		n += len(r.entries)
	}
	p.events = slices.Grow(p.events[:0], n)
	for _, r := range p.group {
		if r.refusal == nil {
			p.events = r.appendEvents(p.events)
		}
	}
	p.keys = p.keys[:0]
	for i := range p.events {
		p.keys = append(p.keys, sortKey{uint64(p.events[i].ws), uint32(i)})
	}
	// Those of one workspace stay in their order: they are of one partition, and so of one flush.
	p.sortKeys()
	arrange(p.events, p.keys)
}

// appendEvents appends the events of a flush that are not written yet, in the order of the log.
func (r *flushRequest) appendEvents(events []flushEvent) []flushEvent {
	records := r.records
	for i := range r.entries {
		e, n := &r.entries[i], len(records)
		if i+1 < len(r.entries) {
			n = int(r.entries[i+1].Records - e.Records)
		}
		if !r.begun || e.Workspace > r.through {
			f := flushEvent{r: r, ws: e.Workspace, lsn: e.LSN, at: uint32(i), records: uint32(n)}
			for _, rec := range records[:n] {
				f.size += rec.Size
			}
			events = append(events, f)
		}
		records = records[n:]
	}
	return events
}

// workspaceEvents returns how many of the events are of the first one's workspace.
func workspaceEvents(events []flushEvent) int {
	n := 1
	for n < len(events) && events[n].ws == events[0].ws {
		n++
	}
	return n
}

// nextRange returns how many of the events the next transaction takes: those of whole workspaces.
func (o *shares) nextRange(events []flushEvent) int {
	n, bytes := 0, int64(0)
	for n < len(events) && n < o.rangeEvents && bytes < o.rangeBytes {
		if o.periodBytes != nil {
			bytes += o.periodBytes[events[n].entry().Kind]
		}
		for end := n + workspaceEvents(events[n:]); n < end; n++ {
			bytes += int64(events[n].size)
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
	last, at := p.last[:0], 0
	end, kind := messages.WLogOffset(0), messages.WSKind(0)
	var seq *messages.Sequence
	for i := range events {
		f, e := &events[i], events[i].entry()
		if e.WLog == 1 {
			last.Raise(numbers.OfKind(e.Kind), 0)
		}
		end = max(end, e.WLog)
		if i == 0 || e.Kind != kind {
			kind = e.Kind
			p.kind, seq = p.s.schema.Kinds[kind], nil
		}
		for _, n := range f.numbersOf() {
			if seq == nil || seq.ID != n.Seq {
				seq = schema.Sequence(p.kind, n.Seq)
			}
			// A number below the initial value, a singleton's say, says nothing about
			// the sequence.
			if seq != nil && n.Number >= seq.Initial && seq.Restarts() == (n.Period != 0) {
				at = last.Raise(n, at)
			}
		}
	}
	last.Raise(messages.SequenceNumber{Seq: messages.SeqWLogOffset, Number: messages.Number(end)}, 0)
	p.last = last
	return last
}

// keep keeps what was found out of a workspace until it is written, if there is room.
func (p *projection) keep(ws messages.WSID, last numbers.Last, isNew bool) {
	if int64(len(p.kept)+len(last))*tail.NumberBytes <= p.s.shares.tables/4 {
		p.keptOf = append(p.keptOf, keptNumbers{ws: ws, first: len(p.kept), end: len(p.kept) + len(last), isNew: isNew})
		p.kept = append(p.kept, last...)
	}
}

// keptOfNext returns what was kept of a workspace, nil if nothing was. It is called for workspaces in their order.
func (p *projection) keptOfNext(ws messages.WSID) *keptNumbers {
	for p.passed < len(p.keptOf) && p.keptOf[p.passed].ws < ws {
		p.passed++
	}
	if p.passed == len(p.keptOf) || p.keptOf[p.passed].ws != ws {
		return nil
	}
	return &p.keptOf[p.passed]
}

// numbersAgain is numbers, or what was kept of them.
func (p *projection) numbersAgain(events []flushEvent, kept *keptNumbers) numbers.Last {
	if kept == nil {
		return p.numbers(events)
	}
	p.kind = p.s.schema.Kinds[events[len(events)-1].entry().Kind]
	return p.kept[kept.first:kept.end]
}

// mergeZone merges the zone that an event sets, if it does, into those of its workspace.
func (f *flushEvent) mergeZone(zones calendar.Zones) calendar.Zones {
	if len(f.r.zones) == 0 {
		return zones
	}
	return messages.MergeZone(zones, tail.ZoneOf(f.r.zones, f.offset()), f.entry().At)
}
