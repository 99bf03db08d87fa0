package bolt

import (
	"sync/atomic"
	"unsafe"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// tail is what the log of one partition has and the projections have not yet. It
// holds what insert-if-absent checks, actualization and readers need to find an
// event, and no body or row. The partition's lock guards it.
type tail struct {
	// entries are indexed by PLog offset.
	entries deque[entry]
	// numbers and records are what entries point into.
	numbers deque[messages.SequenceNumber]
	records deque[recordRef]
	// ids are the events that have a deduplication id, in order.
	ids deque[idRef]
	// zones are the events that give their workspace a time zone, in order.
	zones []zoneRef

	// last is the offset of the last entry of each workspace; entries are linked
	// backwards from it.
	last map[messages.WSID]messages.PLogOffset
	// written is the offset of the last entry that writes a record.
	written map[format.RecordKey]messages.PLogOffset
	// byID is the offset of the entry that has an id; nil if none has.
	byID map[format.DedupKey]messages.PLogOffset

	// size is what the tail takes.
	size tailSize
}

// entry is one event of the tail.
type entry struct {
	lsn   messages.LSN
	ws    messages.WSID
	wlog  messages.WLogOffset
	at    messages.Timestamp
	epoch messages.Epoch
	// numbers and records are where the event's items begin; they end where the
	// next entry's begin.
	numbers, records uint64
	// back is how many offsets before this one the previous entry of the same
	// workspace lies, 0 if there is none in the tail.
	back uint32
	kind messages.WSKind
	// recovered says that the event was read at open, not appended since.
	recovered bool
}

// recordRef is a record that an event writes.
type recordRef struct {
	number messages.Number
	// size is the length of its data in bytes.
	size  uint32
	seq   messages.SeqID
	isNew bool
}

func (r recordRef) id() messages.RecordID { return messages.RecordID{Seq: r.seq, Number: r.number} }

// The estimate of memory: exact for the arenas, generous for the maps.
const (
	entryBytes  = int64(unsafe.Sizeof(entry{})) + 32
	numberBytes = int64(unsafe.Sizeof(messages.SequenceNumber{}))
	recordBytes = int64(unsafe.Sizeof(recordRef{})) + 56
	idBytes     = int64(unsafe.Sizeof(idRef{})) + 64
)

// tailSize is what events take as long as they are not projected.
type tailSize struct {
	// bytes estimates the memory of the tail, rows counts the bytes of the records' data, which
	// a flush has in memory.
	bytes, rows int64
}

func (t *tailSize) add(u tailSize) { t.bytes, t.rows = t.bytes+u.bytes, t.rows+u.rows }

func (t tailSize) minus(u tailSize) tailSize { return tailSize{t.bytes - u.bytes, t.rows - u.rows} }

// reaches reports whether one of the two is at a limit.
func (t tailSize) reaches(limit int64) bool { return t.bytes >= limit || t.rows >= limit }

// tailSizeOf returns what an event takes.
func tailSizeOf(numbers int, records []recordRef, hasID bool) tailSize {
	size := tailSize{bytes: tailBytes(numbers, len(records), hasID)}
	for i := range records {
		size.rows += int64(records[i].size)
	}
	return size
}

// tailBytes estimates the memory that an event takes in the tail.
func tailBytes(numbers, records int, hasID bool) int64 {
	n := entryBytes + int64(numbers)*numberBytes + int64(records)*recordBytes
	if hasID {
		n += idBytes
	}
	return n
}

// restart empties the tail; its next entry has the offset given.
func (t *tail) restart(next messages.PLogOffset) {
	*t = tail{}
	t.entries.restart(uint64(next))
}

func (t *tail) len() int { return t.entries.len() }

// first is the offset of the first entry, or of the next one if there is none.
func (t *tail) first() messages.PLogOffset { return messages.PLogOffset(t.entries.first) }

// end is the offset after the last entry.
func (t *tail) end() messages.PLogOffset { return messages.PLogOffset(t.entries.end) }

func (t *tail) at(o messages.PLogOffset) *entry { return t.entries.at(uint64(o)) }

// push appends an event, and returns what it takes. The zero id means that it has none.
func (t *tail) push(e entry, id messages.DedupID, numbers []messages.SequenceNumber, records []recordRef) tailSize {
	if t.last == nil {
		t.last = make(map[messages.WSID]messages.PLogOffset)
		t.written = make(map[format.RecordKey]messages.PLogOffset)
	}
	offset := t.end()
	e.numbers, e.records = t.numbers.end, t.records.end
	if previous, ok := t.last[e.ws]; ok {
		e.back = uint32(offset - previous)
	}
	t.last[e.ws] = offset
	for _, n := range numbers {
		t.numbers.push(n)
	}
	for _, r := range records {
		t.records.push(r)
		t.written[format.RecordKey{Workspace: e.ws, ID: r.id()}] = offset
	}
	hasID := id != messages.DedupID{}
	if hasID {
		t.pushID(idRef{offset: offset, key: format.DedupKey{Workspace: e.ws, ID: id}})
	}
	t.entries.push(e)
	size := tailSizeOf(len(numbers), records, hasID)
	t.size.add(size)
	return size
}

// numbersEnd and recordsEnd are where the items of the entry at an offset end.
func (t *tail) numbersEnd(o messages.PLogOffset) uint64 {
	if o+1 < t.end() {
		return t.at(o + 1).numbers
	}
	return t.numbers.end
}

func (t *tail) recordsEnd(o messages.PLogOffset) uint64 {
	if o+1 < t.end() {
		return t.at(o + 1).records
	}
	return t.records.end
}

// trimStep is how many entries of a tail are dropped under one hold of the
// partition's lock at most, and trimRecords how many records of them, if there is more
// than one.
const (
	trimStep    = 1024
	trimRecords = 8192
)

// stepEnd returns where a step ends that drops what is from an offset up to another: it
// has at most trimStep entries and trimRecords records, or one entry.
func (t *tail) stepEnd(from, to messages.PLogOffset) messages.PLogOffset {
	most := t.at(from).records + trimRecords
	end := from + 1
	for end < min(to, from+trimStep) && t.recordsEnd(end) <= most {
		end++
	}
	return end
}

// drop removes the entries before an offset, which is at most end. It returns what
// that freed.
func (t *tail) drop(to messages.PLogOffset) tailSize {
	before := t.size
	for o := t.first(); o < to; o++ {
		e := t.at(o)
		if t.last[e.ws] == o {
			delete(t.last, e.ws)
		}
		recordsEnd := t.recordsEnd(o)
		for i := e.records; i < recordsEnd; i++ {
			rec := t.records.at(i)
			k := format.RecordKey{Workspace: e.ws, ID: rec.id()}
			if t.written[k] == o {
				delete(t.written, k)
			}
			t.size.rows -= int64(rec.size)
		}
		t.size.bytes -= tailBytes(int(t.numbersEnd(o)-e.numbers), int(recordsEnd-e.records), false)
	}
	if to == t.end() {
		// Maps never shrink, so an empty tail begins with new ones.
		t.restart(to)
		return before
	}
	t.dropIDs(to)
	t.dropZones(to)
	t.numbers.drop(t.at(to).numbers)
	t.records.drop(t.at(to).records)
	t.entries.drop(uint64(to))
	return before.minus(t.size)
}

// previous returns the entry before e, at offset o, of the same workspace.
func (t *tail) previous(o messages.PLogOffset, e *entry) (messages.PLogOffset, *entry) {
	if e.back == 0 || o-messages.PLogOffset(e.back) < t.first() {
		return 0, nil
	}
	o -= messages.PLogOffset(e.back)
	return o, t.at(o)
}

// lastOf returns the last entry of a workspace, nil if the tail has none.
func (t *tail) lastOf(ws messages.WSID) (messages.PLogOffset, *entry) {
	o, ok := t.last[ws]
	if !ok {
		return 0, nil
	}
	return o, t.at(o)
}

// numbering returns what the entry at an offset says, its numbers appended to
// arena.
func (t *tail) numbering(o messages.PLogOffset, arena []messages.SequenceNumber) (messages.Numbering, []messages.SequenceNumber) {
	e := t.at(o)
	start := len(arena)
	for i, end := e.numbers, t.numbersEnd(o); i < end; i++ {
		arena = append(arena, *t.numbers.at(i))
	}
	n := messages.Numbering{
		Epoch:         e.epoch,
		PLogOffset:    o,
		Workspace:     e.ws,
		WorkspaceKind: e.kind,
		WLogOffset:    e.wlog,
		RegisteredAt:  e.at,
		Zone:          t.zoneOf(o),
	}
	if len(arena) > start {
		n.Numbers = arena[start:len(arena):len(arena)]
	}
	return n, arena
}

// totals are the sizes of all tails: their events, the memory that they take, and how much data their records have.
type totals struct{ events, bytes, rows atomic.Int64 }

// count adds events of a tail to the totals. What was dropped counts below 0.
func (t *totals) count(events int, size tailSize) {
	t.events.Add(int64(events))
	t.bytes.Add(size.bytes)
	t.rows.Add(size.rows)
}

// dequeChunk is how many items a chunk holds: large enough to keep the number of
// allocations low. One that has been begun grows to it from firstChunk, for the sake of
// thousands of partitions with a tail of an event or two.
const (
	dequeChunk = 64
	firstChunk = 2
)

// deque is a queue whose items keep their index for life: pushed at the end,
// dropped at the front. Its items must hold no pointers, so that the garbage
// collector passes a tail of millions of items by.
type deque[T any] struct {
	chunks [][]T
	// base is the index of the first item of the first chunk.
	base uint64
	// first and end delimit the items that are there.
	first, end uint64
}

// restart empties the deque; the next item pushed has the index given.
func (d *deque[T]) restart(index uint64) {
	*d = deque[T]{base: index, first: index, end: index}
}

func (d *deque[T]) len() int { return int(d.end - d.first) }

func (d *deque[T]) push(item T) {
	i := d.end - d.base
	switch c := int(i / dequeChunk); {
	case c == 0 && len(d.chunks) == 0:
		d.chunks = append(d.chunks, make([]T, firstChunk))
	case c == len(d.chunks):
		d.chunks = append(d.chunks, make([]T, dequeChunk))
	case int(i%dequeChunk) == len(d.chunks[c]):
		grown := make([]T, min(dequeChunk, 4*len(d.chunks[c])))
		copy(grown, d.chunks[c])
		d.chunks[c] = grown
	}
	*d.slot(d.end) = item
	d.end++
}

// at returns the item at an index from first up to, not including, end.
func (d *deque[T]) at(index uint64) *T { return d.slot(index) }

func (d *deque[T]) slot(index uint64) *T {
	i := index - d.base
	return &d.chunks[i/dequeChunk][i%dequeChunk]
}

// copy appends the items from an index up to, not including, another.
func (d *deque[T]) copy(to []T, from, end uint64) []T {
	for ; from < end; from++ {
		to = append(to, *d.slot(from))
	}
	return to
}

// drop removes all items before an index, which is at most end.
func (d *deque[T]) drop(index uint64) {
	d.first = index
	if d.first == d.end {
		d.restart(d.end)
		return
	}
	n := (d.first - d.base) / dequeChunk
	clear(d.chunks[:n])
	d.chunks = d.chunks[n:]
	d.base += n * dequeChunk
}

// idRef is an event of the tail that has a deduplication id.
type idRef struct {
	offset messages.PLogOffset
	key    format.DedupKey
}

func (t *tail) pushID(r idRef) {
	if t.byID == nil {
		t.byID = make(map[format.DedupKey]messages.PLogOffset)
	}
	t.byID[r.key] = r.offset
	t.ids.push(r)
}

// dropIDs forgets the ids of the entries before an offset.
func (t *tail) dropIDs(to messages.PLogOffset) {
	i := t.ids.first
	for ; i < t.ids.end && t.ids.at(i).offset < to; i++ {
		r := t.ids.at(i)
		if t.byID[r.key] == r.offset {
			delete(t.byID, r.key)
		}
		t.size.bytes -= idBytes
	}
	t.ids.drop(i)
}

// findID returns the offset, in the workspace's log, of the entry that has an id, 0
// if there is none.
func (t *tail) findID(k format.DedupKey) messages.WLogOffset {
	o, ok := t.byID[k]
	if !ok {
		return 0
	}
	return t.at(o).wlog
}
