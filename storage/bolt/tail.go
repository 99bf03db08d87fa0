package bolt

import (
	"cmp"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/deque"
	"github.com/partita-go/partita/storage/bolt/internal/fetch"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// tail is what the log of one partition has and the projections have not yet. It
// holds what insert-if-absent checks, actualization and readers need to find an
// event, and no body or row. The partition's lock guards it.
type tail struct {
	// entries are indexed by PLog offset.
	entries deque.Deque[entry]
	// numbers and records are what entries point into.
	numbers deque.Deque[messages.SequenceNumber]
	records deque.Deque[recordRef]
	// ids are the events that have a deduplication id, in order.
	ids deque.Deque[idRef]
	// zones are the events that give their workspace a time zone, in order.
	zones []zoneRef

	// last is the offset of the last entry of each workspace; entries are linked
	// backwards from it.
	last map[messages.WSID]messages.PLogOffset
	// index finds records of workspaces that have many; nil if the tail has had no entry.
	index *recordIndex
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

// place is where the event of an entry lies, which has an offset in the log of a partition.
func (e *entry) place(p messages.PartitionID, o messages.PLogOffset) fetch.Place {
	return fetch.Place{LSN: e.lsn, Partition: p, Offset: o, Workspace: e.ws, WLog: e.wlog}
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

// The estimate of memory: exact for the arenas, generous for the maps. That of records is there only while it is used.
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
	t.entries.Restart(uint64(next))
}

func (t *tail) len() int { return t.entries.Len() }

// first is the offset of the first entry, or of the next one if there is none.
func (t *tail) first() messages.PLogOffset { return messages.PLogOffset(t.entries.First) }

// end is the offset after the last entry.
func (t *tail) end() messages.PLogOffset { return messages.PLogOffset(t.entries.End) }

func (t *tail) at(o messages.PLogOffset) *entry { return t.entries.At(uint64(o)) }

// push appends an event, and returns what it takes. The zero id means that it has none.
func (t *tail) push(e entry, id messages.DedupID, numbers []messages.SequenceNumber, records []recordRef) tailSize {
	if t.last == nil {
		t.last = make(map[messages.WSID]messages.PLogOffset)
		t.index = new(recordIndex)
	}
	offset := t.end()
	e.numbers, e.records = t.numbers.End, t.records.End
	if previous, ok := t.last[e.ws]; ok {
		e.back = uint32(offset - previous)
	}
	t.last[e.ws] = offset
	for _, n := range numbers {
		t.numbers.Push(n)
	}
	for _, r := range records {
		t.records.Push(r)
	}
	hasID := id != messages.DedupID{}
	if hasID {
		t.pushID(idRef{offset: offset, key: format.DedupKey{Workspace: e.ws, ID: id}})
	}
	t.entries.Push(e)
	t.index.add(t, offset)
	size := tailSizeOf(len(numbers), records, hasID)
	t.size.add(size)
	return size
}

// numbersEnd and recordsEnd are where the items of the entry at an offset end.
func (t *tail) numbersEnd(o messages.PLogOffset) uint64 {
	if o+1 < t.end() {
		return t.at(o + 1).numbers
	}
	return t.numbers.End
}

func (t *tail) recordsEnd(o messages.PLogOffset) uint64 {
	if o+1 < t.end() {
		return t.at(o + 1).records
	}
	return t.records.End
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
	if t.index != nil {
		t.index.age()
	}
	for o := t.first(); o < to; o++ {
		e := t.at(o)
		if t.last[e.ws] == o {
			delete(t.last, e.ws)
		}
		recordsEnd := t.recordsEnd(o)
		for i := e.records; i < recordsEnd; i++ {
			rec := t.records.At(i)
			t.index.drop(format.RecordKey{Workspace: e.ws, ID: rec.id()}, o)
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
	t.numbers.Drop(t.at(to).numbers)
	t.records.Drop(t.at(to).records)
	t.entries.Drop(uint64(to))
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
		arena = append(arena, *t.numbers.At(i))
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
	t.ids.Push(r)
}

// dropIDs forgets the ids of the entries before an offset.
func (t *tail) dropIDs(to messages.PLogOffset) {
	i := t.ids.First
	for ; i < t.ids.End && t.ids.At(i).offset < to; i++ {
		r := t.ids.At(i)
		if t.byID[r.key] == r.offset {
			delete(t.byID, r.key)
		}
		t.size.bytes -= idBytes
	}
	t.ids.Drop(i)
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

// zoneRef is an event of the tail that gives its workspace a time zone.
type zoneRef struct {
	offset messages.PLogOffset
	zone   string
}

const zoneBytes = int64(unsafe.Sizeof(zoneRef{})) + calendar.MaxZoneName

// zoneSize is what an event's zone takes in the tail.
func zoneSize(zone string) (n tailSize) {
	if zone != "" {
		n.bytes = zoneBytes
	}
	return n
}

// pushZone notes the zone of the event that was pushed last, if it has one, and returns what that takes.
func (t *tail) pushZone(zone string) tailSize {
	size := zoneSize(zone)
	if zone != "" {
		t.zones = append(t.zones, zoneRef{offset: t.end() - 1, zone: zone})
		t.size.add(size)
	}
	return size
}

// zonesFrom returns where the first event from an offset on is among those with a zone.
func zonesFrom(zones []zoneRef, o messages.PLogOffset) (i int, found bool) {
	return slices.BinarySearchFunc(zones, o, func(z zoneRef, o messages.PLogOffset) int { return cmp.Compare(z.offset, o) })
}

// zoneOf returns the zone that the event at an offset sets, "" if none.
func zoneOf(zones []zoneRef, o messages.PLogOffset) string {
	if i, found := zonesFrom(zones, o); found {
		return zones[i].zone
	}
	return ""
}

func (t *tail) zoneOf(o messages.PLogOffset) string { return zoneOf(t.zones, o) }

// dropZones forgets the zones of the entries before an offset.
func (t *tail) dropZones(to messages.PLogOffset) {
	n, _ := zonesFrom(t.zones, to)
	t.size.bytes -= int64(n) * zoneBytes
	t.zones = slices.Delete(t.zones, 0, n)
}

// mergeZone merges the zone that an event sets, if it does, into those of its workspace.
func (f *flushEvent) mergeZone(zones calendar.Zones) calendar.Zones {
	return messages.MergeZone(zones, zoneOf(f.r.zones, f.o), f.e.at)
}
