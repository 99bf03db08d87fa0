// Package tail is what the log of one partition has and state.db has not yet, in memory.
//
//	tail.go     Tail: its entries, what they point into, and what they take of memory
//	records.go  which entry has written a record last
//
// Whoever uses a tail holds the lock of its partition.
package tail

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

// Tail is what the log of one partition has and the projections have not yet. It
// holds what insert-if-absent checks, actualization and readers need to find an
// event, and no body or row. The partition's lock guards it.
type Tail struct {
	// Entries are indexed by PLog offset.
	Entries deque.Deque[Entry]
	// Numbers and Records are what entries point into.
	Numbers deque.Deque[messages.SequenceNumber]
	Records deque.Deque[Record]
	// IDs are the events that have a deduplication id, in order.
	IDs deque.Deque[IDRef]
	// Zones are the events that give their workspace a time zone, in order.
	Zones []Zone

	// Last is the offset of the last entry of each workspace; entries are linked
	// backwards from it.
	Last map[messages.WSID]messages.PLogOffset
	// index finds records of workspaces that have many; nil if the tail has had no entry.
	index *recordIndex
	// ByID is the offset of the entry that has an id; nil if none has.
	ByID map[format.DedupKey]messages.PLogOffset

	// Size is what the tail takes.
	Size Size
}

// Entry is one event of the tail.
type Entry struct {
	LSN       messages.LSN
	Workspace messages.WSID
	WLog      messages.WLogOffset
	At        messages.Timestamp
	Epoch     messages.Epoch
	// Numbers and Records are where the event's items begin; they end where the
	// next entry's begin.
	Numbers, Records uint64
	// back is how many offsets before this one the previous entry of the same
	// workspace lies, 0 if there is none in the tail.
	back uint32
	Kind messages.WSKind
	// Recovered says that the event was read at open, not appended since.
	Recovered bool
}

// Place is where the event of an entry lies, which has an offset in the log of a partition.
func (e *Entry) Place(p messages.PartitionID, o messages.PLogOffset) fetch.Place {
	return fetch.Place{LSN: e.LSN, Partition: p, Offset: o, Workspace: e.Workspace, WLog: e.WLog}
}

// Record is a record that an event writes.
type Record struct {
	Number messages.Number
	// Size is the length of its data in bytes.
	Size  uint32
	Seq   messages.SeqID
	IsNew bool
}

// ID returns the record's id.
func (r Record) ID() messages.RecordID { return messages.RecordID{Seq: r.Seq, Number: r.Number} }

// The estimate of memory: exact for the arenas, generous for the maps. That of records is there only while it is used.
const (
	entryBytes  = int64(unsafe.Sizeof(Entry{})) + 32
	NumberBytes = int64(unsafe.Sizeof(messages.SequenceNumber{}))
	RecordBytes = int64(unsafe.Sizeof(Record{})) + 56
	IDBytes     = int64(unsafe.Sizeof(IDRef{})) + 64
)

// Size is what events take as long as they are not projected.
type Size struct {
	// Bytes estimates the memory of the tail, Rows counts the bytes of the records' data, which
	// a flush has in memory.
	Bytes, Rows int64
}

// Add adds what others take.
func (t *Size) Add(u Size) { t.Bytes, t.Rows = t.Bytes+u.Bytes, t.Rows+u.Rows }

// Minus returns what is left without what others take.
func (t Size) Minus(u Size) Size { return Size{t.Bytes - u.Bytes, t.Rows - u.Rows} }

// Reaches reports whether one of the two is at a limit.
func (t Size) Reaches(limit int64) bool { return t.Bytes >= limit || t.Rows >= limit }

// SizeOf returns what an event takes.
func SizeOf(numbers int, records []Record, hasID bool) Size {
	size := Size{Bytes: BytesOf(numbers, len(records), hasID)}
	for i := range records {
		size.Rows += int64(records[i].Size)
	}
	return size
}

// BytesOf estimates the memory that an event takes in the tail.
func BytesOf(numbers, records int, hasID bool) int64 {
	n := entryBytes + int64(numbers)*NumberBytes + int64(records)*RecordBytes
	if hasID {
		n += IDBytes
	}
	return n
}

// Restart empties the tail; its next entry has the offset given.
func (t *Tail) Restart(next messages.PLogOffset) {
	*t = Tail{}
	t.Entries.Restart(uint64(next))
}

// Len returns how many entries there are.
func (t *Tail) Len() int { return t.Entries.Len() }

// First is the offset of the first entry, or of the next one if there is none.
func (t *Tail) First() messages.PLogOffset { return messages.PLogOffset(t.Entries.First) }

// End is the offset after the last entry.
func (t *Tail) End() messages.PLogOffset { return messages.PLogOffset(t.Entries.End) }

// At returns the entry at an offset, which must be there.
func (t *Tail) At(o messages.PLogOffset) *Entry { return t.Entries.At(uint64(o)) }

// Push appends an event, and returns what it takes. The zero id means that it has none.
func (t *Tail) Push(e Entry, id messages.DedupID, numbers []messages.SequenceNumber, records []Record) Size {
	if t.Last == nil {
		t.Last = make(map[messages.WSID]messages.PLogOffset)
		t.index = new(recordIndex)
	}
	offset := t.End()
	e.Numbers, e.Records = t.Numbers.End, t.Records.End
	if previous, ok := t.Last[e.Workspace]; ok {
		e.back = uint32(offset - previous)
	}
	t.Last[e.Workspace] = offset
	for _, n := range numbers {
		t.Numbers.Push(n)
	}
	for _, r := range records {
		t.Records.Push(r)
	}
	hasID := id != messages.DedupID{}
	if hasID {
		t.pushID(IDRef{Offset: offset, Key: format.DedupKey{Workspace: e.Workspace, ID: id}})
	}
	t.Entries.Push(e)
	t.index.add(t, offset)
	size := SizeOf(len(numbers), records, hasID)
	t.Size.Add(size)
	return size
}

// NumbersEnd returns where the numbers of the entry at an offset end.
func (t *Tail) NumbersEnd(o messages.PLogOffset) uint64 {
	if o+1 < t.End() {
		return t.At(o + 1).Numbers
	}
	return t.Numbers.End
}

// RecordsEnd returns where its records end.
func (t *Tail) RecordsEnd(o messages.PLogOffset) uint64 {
	if o+1 < t.End() {
		return t.At(o + 1).Records
	}
	return t.Records.End
}

// trimStep is how many entries of a tail are dropped under one hold of the
// partition's lock at most, and trimRecords how many records of them, if there is more
// than one.
const (
	TrimStep    = 1024
	trimRecords = 8192
)

// StepEnd returns where a step ends that drops what is from an offset up to another: it
// has at most trimStep entries and trimRecords records, or one entry.
func (t *Tail) StepEnd(from, to messages.PLogOffset) messages.PLogOffset {
	most := t.At(from).Records + trimRecords
	end := from + 1
	for end < min(to, from+TrimStep) && t.RecordsEnd(end) <= most {
		end++
	}
	return end
}

// Drop removes the entries before an offset, which is at most end. It returns what
// that freed.
func (t *Tail) Drop(to messages.PLogOffset) Size {
	before := t.Size
	for o := t.First(); o < to; o++ {
		e := t.At(o)
		if t.Last[e.Workspace] == o {
			delete(t.Last, e.Workspace)
			delete(t.index.of, e.Workspace)
		}
		recordsEnd := t.RecordsEnd(o)
		for i := e.Records; i < recordsEnd; i++ {
			rec := t.Records.At(i)
			t.index.drop(format.RecordKey{Workspace: e.Workspace, ID: rec.ID()}, o)
			t.Size.Rows -= int64(rec.Size)
		}
		t.Size.Bytes -= BytesOf(int(t.NumbersEnd(o)-e.Numbers), int(recordsEnd-e.Records), false)
	}
	if to == t.End() {
		// Maps never shrink, so an empty tail begins with new ones.
		t.Restart(to)
		return before
	}
	t.dropIDs(to)
	t.dropZones(to)
	t.Numbers.Drop(t.At(to).Numbers)
	t.Records.Drop(t.At(to).Records)
	t.Entries.Drop(uint64(to))
	return before.Minus(t.Size)
}

// Previous returns the entry before e, at offset o, of the same workspace.
func (t *Tail) Previous(o messages.PLogOffset, e *Entry) (messages.PLogOffset, *Entry) {
	if e.back == 0 || o-messages.PLogOffset(e.back) < t.First() {
		return 0, nil
	}
	o -= messages.PLogOffset(e.back)
	return o, t.At(o)
}

// LastOf returns the last entry of a workspace, nil if the tail has none.
func (t *Tail) LastOf(ws messages.WSID) (messages.PLogOffset, *Entry) {
	o, ok := t.Last[ws]
	if !ok {
		return 0, nil
	}
	return o, t.At(o)
}

// Numbering returns what the entry at an offset says, its numbers appended to
// arena.
func (t *Tail) Numbering(o messages.PLogOffset, arena []messages.SequenceNumber) (messages.Numbering, []messages.SequenceNumber) {
	e := t.At(o)
	start := len(arena)
	for i, end := e.Numbers, t.NumbersEnd(o); i < end; i++ {
		arena = append(arena, *t.Numbers.At(i))
	}
	n := messages.Numbering{
		Epoch:         e.Epoch,
		PLogOffset:    o,
		Workspace:     e.Workspace,
		WorkspaceKind: e.Kind,
		WLogOffset:    e.WLog,
		RegisteredAt:  e.At,
		Zone:          t.zoneOf(o),
	}
	if len(arena) > start {
		n.Numbers = arena[start:len(arena):len(arena)]
	}
	return n, arena
}

// Totals are the sizes of all tails: their events, the memory that they take, and how much data their records have.
type Totals struct{ Events, Bytes, Rows atomic.Int64 }

// Count adds events of a tail to the totals. What was dropped counts below 0.
func (t *Totals) Count(events int, size Size) {
	t.Events.Add(int64(events))
	t.Bytes.Add(size.Bytes)
	t.Rows.Add(size.Rows)
}

// Set makes the totals those of another.
func (t *Totals) Set(of *Totals) {
	t.Events.Store(of.Events.Load())
	t.Bytes.Store(of.Bytes.Load())
	t.Rows.Store(of.Rows.Load())
}

// IDRef is an event of the tail that has a deduplication id.
type IDRef struct {
	Offset messages.PLogOffset
	Key    format.DedupKey
}

func (t *Tail) pushID(r IDRef) {
	if t.ByID == nil {
		t.ByID = make(map[format.DedupKey]messages.PLogOffset)
	}
	t.ByID[r.Key] = r.Offset
	t.IDs.Push(r)
}

// dropIDs forgets the ids of the entries before an offset.
func (t *Tail) dropIDs(to messages.PLogOffset) {
	i := t.IDs.First
	for ; i < t.IDs.End && t.IDs.At(i).Offset < to; i++ {
		r := t.IDs.At(i)
		if t.ByID[r.Key] == r.Offset {
			delete(t.ByID, r.Key)
		}
		t.Size.Bytes -= IDBytes
	}
	t.IDs.Drop(i)
}

// FindID returns the offset, in the workspace's log, of the entry that has an id, 0
// if there is none.
func (t *Tail) FindID(k format.DedupKey) messages.WLogOffset {
	o, ok := t.ByID[k]
	if !ok {
		return 0
	}
	return t.At(o).WLog
}

// Zone is an event of the tail that gives its workspace a time zone.
type Zone struct {
	offset messages.PLogOffset
	zone   string
}

const zoneBytes = int64(unsafe.Sizeof(Zone{})) + calendar.MaxZoneName

// SizeOfZone is what an event's zone takes in the tail.
func SizeOfZone(zone string) (n Size) {
	if zone != "" {
		n.Bytes = zoneBytes
	}
	return n
}

// PushZone notes the zone of the event that was pushed last, if it has one, and returns what that takes.
func (t *Tail) PushZone(zone string) Size {
	size := SizeOfZone(zone)
	if zone != "" {
		t.Zones = append(t.Zones, Zone{offset: t.End() - 1, zone: zone})
		t.Size.Add(size)
	}
	return size
}

// ZonesFrom returns where the first event from an offset on is among those with a zone.
func ZonesFrom(zones []Zone, o messages.PLogOffset) (i int, found bool) {
	return slices.BinarySearchFunc(zones, o, func(z Zone, o messages.PLogOffset) int { return cmp.Compare(z.offset, o) })
}

// ZoneOf returns the zone that the event at an offset sets, "" if none.
func ZoneOf(zones []Zone, o messages.PLogOffset) string {
	if i, found := ZonesFrom(zones, o); found {
		return zones[i].zone
	}
	return ""
}

func (t *Tail) zoneOf(o messages.PLogOffset) string { return ZoneOf(t.Zones, o) }

// dropZones forgets the zones of the entries before an offset.
func (t *Tail) dropZones(to messages.PLogOffset) {
	n, _ := ZonesFrom(t.Zones, to)
	t.Size.Bytes -= int64(n) * zoneBytes
	t.Zones = slices.Delete(t.Zones, 0, n)
}

// RecordsOf appends what the tail keeps of the records that an event writes.
func RecordsOf(dst []Record, records []messages.Record) []Record {
	for i := range records {
		r := &records[i]
		dst = append(dst, Record{Number: r.ID.Number, Size: uint32(len(r.Data)), Seq: r.ID.Seq, IsNew: r.New})
	}
	return dst
}

// WalkLimit is how many events of a workspace are looked at for the end of its
// records. One with more in the tail goes without.
const WalkLimit = 64

// LastNumber returns the largest of an end and of the records of its sequence that
// the tail has, or false if the workspace has too much in the tail.
func (t *Tail) LastNumber(ws messages.WSID, end messages.SequenceNumber) (messages.Number, bool) {
	o, e := t.LastOf(ws)
	n := end.Number
	for walked := 0; e != nil; o, e = t.Previous(o, e) {
		if walked++; walked > WalkLimit {
			return 0, false
		}
		for i, last := e.Records, t.RecordsEnd(o); i < last; i++ {
			if r := t.Records.At(i); r.Seq == end.Seq {
				n = max(n, r.Number)
			}
		}
	}
	return n, true
}
