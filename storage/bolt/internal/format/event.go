package format

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// An event's value in bucket log:
//
//	 0        1            5
//	+--------+------------+---------------------------------------------+
//	| version| CRC-32C    | payload                                     |
//	| 1      | 4, BE      |                                             |
//	+--------+------------+---------------------------------------------+
//
// The CRC covers the payload, the version byte and the LSN (8, BE), in this
// order: a value under another key than its own is damaged.
//
//	payload  = kind epoch partition PLogOffset WSID WSKind WLogOffset time
//	           numbers body records sections
//	numbers  = count { SeqID [ period ] first more }     runs first, first+1 … first+more of one sequence
//	body     = length bytes
//	records  = count { flags SeqID number length bytes }     flags: bit 0 new
//	sections = count { tag length bytes }     see codec_sections.go
//
// The version is 3 if a number has a period, or the event a business date, a zone or section 5, else 2 if the runtime has
// sections of its own in it, else 1. Only in version 3 runs have a period, which is zero if there
// is none.
//
// Everything is an unsigned varint but the time, which is a zigzag varint, and
// kind and flags, which are one byte each. Nothing may follow.
const (
	eventVersion   = 1
	eventReserved  = 2
	eventPeriods   = 3
	EventHeaderLen = 5
)

// MaxEventSize bounds an event's value in bytes.
const MaxEventSize = messages.MaxEventBytes

const recordFlagNew = 1

// Castagnoli is the table of all checksums.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendPayload encodes an event's payload.
func appendPayload(b []byte, e *messages.Event, version byte) []byte {
	b = append(b, byte(e.Kind))
	b = binary.AppendUvarint(b, uint64(e.Epoch))
	b = binary.AppendUvarint(b, uint64(e.Partition))
	b = binary.AppendUvarint(b, uint64(e.PLogOffset))
	b = binary.AppendUvarint(b, uint64(e.Workspace))
	b = binary.AppendUvarint(b, uint64(e.WorkspaceKind))
	b = binary.AppendUvarint(b, uint64(e.WLogOffset))
	b = binary.AppendVarint(b, int64(e.RegisteredAt))
	b = appendNumbers(b, e.Numbers, version)
	b = appendBytes(b, e.Body)
	b = binary.AppendUvarint(b, uint64(len(e.Records)))
	for i := range e.Records {
		r := &e.Records[i]
		var flags byte
		if r.New {
			flags = recordFlagNew
		}
		b = append(b, flags)
		b = binary.AppendUvarint(b, uint64(r.ID.Seq))
		b = binary.AppendUvarint(b, uint64(r.ID.Number))
		b = appendBytes(b, r.Data)
	}
	return appendSections(b, e)
}

func appendNumbers(b []byte, numbers []messages.SequenceNumber, version byte) []byte {
	runs := 0
	for i := 0; i < len(numbers); i += runLen(numbers[i:]) {
		runs++
	}
	b = binary.AppendUvarint(b, uint64(runs))
	for i := 0; i < len(numbers); {
		n := runLen(numbers[i:])
		b = binary.AppendUvarint(b, uint64(numbers[i].Seq))
		if version >= eventPeriods {
			b = binary.AppendUvarint(b, uint64(numbers[i].Period))
		}
		b = binary.AppendUvarint(b, uint64(numbers[i].Number))
		b = binary.AppendUvarint(b, uint64(n-1))
		i += n
	}
	return b
}

// runLen returns how many numbers at the head follow each other in one sequence.
func runLen(numbers []messages.SequenceNumber) int {
	n := 1
	for n < len(numbers) && numbers[n].SequencePeriod() == numbers[0].SequencePeriod() &&
		numbers[n].Number == numbers[0].Number+messages.Number(n) && numbers[n].Number != 0 {
		n++
	}
	return n
}

func appendBytes[T []byte | string](b []byte, data T) []byte {
	b = binary.AppendUvarint(b, uint64(len(data)))
	return append(b, data...)
}

// EncodeEvent encodes an event without its LSN; SealEvent makes it complete.
func EncodeEvent(e *messages.Event) []byte {
	return AppendEvent(make([]byte, 0, EventHeaderLen+SizeHint(e)), e)
}

// AppendEvent is EncodeEvent behind other bytes.
func AppendEvent(b []byte, e *messages.Event) []byte {
	start := len(b)
	b = append(b, versionOf(e), 0, 0, 0, 0)
	b = appendPayload(b, e, b[start])
	binary.BigEndian.PutUint32(b[start+1:], crc32.Update(0, Castagnoli, b[start+EventHeaderLen:]))
	return b
}

// SizeHint estimates the length of an event's payload from above, but for many
// scattered numbers.
func SizeHint(e *messages.Event) int {
	n := 114 + 8*len(e.Numbers) + moveSize*len(e.Moves) + len(e.Body) + len(e.Zone)
	for i := range e.Records {
		n += 18 + len(e.Records[i].Data)
	}
	for i := range e.Sections {
		n += 8 + len(e.Sections[i].Data)
	}
	return n
}

// SealEvent finishes the checksum of an event encoded by EncodeEvent. It is
// called once per value: the LSN is known to the committer only.
func SealEvent(value []byte, lsn messages.LSN) {
	binary.BigEndian.PutUint32(value[1:], finishCRC(binary.BigEndian.Uint32(value[1:]), value[0], lsn))
}

// finishCRC continues a payload's CRC over the version and the LSN.
func finishCRC(crc uint32, version byte, lsn messages.LSN) uint32 {
	var tail [9]byte
	tail[0] = version
	binary.BigEndian.PutUint64(tail[1:], uint64(lsn))
	return updateCRC(crc, tail[:])
}

// EventView is a decoded event that still points into the encoded value: body,
// rows and sections are valid as long as the value is. It is reused from value to
// value, so that a scan allocates nothing per event.
type EventView struct {
	LSN           messages.LSN
	CRC           uint32
	kind          messages.EventKind
	Epoch         messages.Epoch
	Partition     messages.PartitionID
	PLogOffset    messages.PLogOffset
	Workspace     messages.WSID
	WorkspaceKind messages.WSKind
	WLogOffset    messages.WLogOffset
	RegisteredAt  messages.Timestamp
	Zone          string
	numbers       []messages.SequenceNumber
	brought       uint32
	moves         []messages.SequenceNumber
	Records       []messages.Record
	body          []byte
	DedupID       messages.DedupID
	together      uint32
	date          calendar.Date
	trace         ids.TraceID
	sections      []messages.Section
	dataLen       int
	numberings    []messages.SequenceNumber
}

// Decode reads a value and verifies it against the LSN that is its key. It is
// safe on any bytes.
func (v *EventView) Decode(lsn messages.LSN, value []byte) error {
	v.LSN = lsn
	if len(value) < EventHeaderLen {
		return ErrTruncated
	}
	if value[0] < eventVersion || value[0] > eventPeriods {
		return unknownVersion(value[0], eventVersion, eventPeriods)
	}
	payload := value[EventHeaderLen:]
	v.CRC = binary.BigEndian.Uint32(value[1:])
	if finishCRC(crc32.Update(0, Castagnoli, payload), value[0], lsn) != v.CRC {
		return ErrChecksum
	}
	r := ByteReader{Rest: payload}
	v.decodeHead(&r)
	v.decodeNumbers(&r, value[0])
	v.body = r.bytes()
	v.decodeRecords(&r)
	newer := v.decodeSections(&r, value[0])
	switch {
	case r.Bad || len(r.Rest) != 0:
		return ErrLayout
	case newer != 0:
		return fmt.Errorf("%w: it has a section %d of the runtime, want 1 to %d", ErrNewer, newer, tagTrace)
	}
	return nil
}

func (v *EventView) decodeHead(r *ByteReader) {
	v.kind = messages.EventKind(r.byte())
	v.Epoch = messages.Epoch(r.Uvarint(math.MaxUint64))
	v.Partition = messages.PartitionID(r.Uvarint(math.MaxUint32))
	v.PLogOffset = messages.PLogOffset(r.Uvarint(math.MaxUint64))
	v.Workspace = messages.WSID(r.Uvarint(math.MaxUint64))
	v.WorkspaceKind = messages.WSKind(r.Uvarint(math.MaxUint16))
	v.WLogOffset = messages.WLogOffset(r.Uvarint(math.MaxUint64))
	v.RegisteredAt = messages.Timestamp(r.varint())
}

func (v *EventView) decodeNumbers(r *ByteReader, version byte) {
	v.numbers = v.numbers[:0]
	for runs := r.Count(3); runs > 0 && !r.Bad; runs-- {
		seq, period := messages.SeqID(r.Uvarint(math.MaxUint16)), calendar.Date(0)
		if version >= eventPeriods {
			period = calendar.Date(r.Uvarint(math.MaxUint32))
		}
		first := r.Uvarint(math.MaxUint64)
		more := r.Uvarint(messages.MaxEventNumbers)
		if r.Bad || first > math.MaxUint64-more || uint64(len(v.numbers))+more >= messages.MaxEventNumbers {
			r.fail()
			return
		}
		for n := uint64(0); n <= more; n++ {
			v.numbers = append(v.numbers, messages.SequenceNumber{Seq: seq, Period: period, Number: messages.Number(first + n)})
		}
	}
}

func (v *EventView) decodeRecords(r *ByteReader) {
	clear(v.Records)
	v.Records = v.Records[:0]
	v.dataLen = len(v.body)
	for n := r.Count(4); n > 0 && !r.Bad; n-- {
		flags := r.byte()
		if flags > recordFlagNew {
			r.fail()
			return
		}
		id := messages.RecordID{Seq: messages.SeqID(r.Uvarint(math.MaxUint16)), Number: messages.Number(r.Uvarint(math.MaxUint64))}
		data := r.bytes()
		v.dataLen += len(data)
		v.Records = append(v.Records, messages.Record{ID: id, New: flags == recordFlagNew, Data: data})
	}
}

// Event returns a copy that shares nothing with the value or with the view.
func (v *EventView) Event() messages.Event {
	var e messages.Event
	v.Lend(&e)
	e.Numbers, e.Moves, e.Records, e.Sections = own(e.Numbers), own(e.Moves), own(e.Records), own(e.Sections)
	arena := make([]byte, 0, v.dataLen)
	e.Body, arena = take(arena, v.body)
	for i := range e.Records {
		e.Records[i].Data, arena = take(arena, e.Records[i].Data)
	}
	for i := range e.Sections {
		e.Sections[i].Data, arena = take(arena, e.Sections[i].Data)
	}
	return e
}

// own copies a list, without room behind it. An empty one becomes nil.
func own[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return append(make([]T, 0, len(list)), list...)
}

// take copies data to the end of an arena that has room for it. Empty data
// becomes nil.
func take(arena, data []byte) (copied, rest []byte) {
	if len(data) == 0 {
		return nil, arena
	}
	n := len(arena)
	arena = append(arena, data...)
	return arena[n:len(arena):len(arena)], arena
}

// Numbering returns the numbers given out, the ids of new records that are not
// among them, and the moves: what [messages.Event.Numbering] lists. The slice is the view's.
func (v *EventView) Numbering() []messages.SequenceNumber {
	v.numberings = append(v.numberings[:0], v.numbers...)
	v.numberings = append(messages.AppendExplicit(v.numberings, v.numbers, v.Records), v.moves...)
	return v.numberings
}

// ByteReader reads a payload. Once something was wrong it reads zeros.
type ByteReader struct {
	Rest []byte
	Bad  bool
}

func (r *ByteReader) fail() { r.Bad, r.Rest = true, nil }

func (r *ByteReader) byte() byte {
	if len(r.Rest) == 0 {
		r.fail()
		return 0
	}
	c := r.Rest[0]
	r.Rest = r.Rest[1:]
	return c
}

// Uvarint reads an unsigned varint that is not above a limit.
func (r *ByteReader) Uvarint(limit uint64) uint64 {
	if len(r.Rest) > 0 && r.Rest[0] < 0x80 { // every limit is above 127
		n := uint64(r.Rest[0])
		r.Rest = r.Rest[1:]
		return n
	}
	n, width := binary.Uvarint(r.Rest)
	if width <= 0 || n > limit {
		r.fail()
		return 0
	}
	r.Rest = r.Rest[width:]
	return n
}

func (r *ByteReader) varint() int64 {
	n, width := binary.Varint(r.Rest)
	if width <= 0 {
		r.fail()
		return 0
	}
	r.Rest = r.Rest[width:]
	return n
}

// Count reads how many items follow, each of which takes at least size bytes.
func (r *ByteReader) Count(size int) int {
	n := r.Uvarint(math.MaxInt32)
	if n > uint64(len(r.Rest)/size) {
		r.fail()
		return 0
	}
	return int(n)
}

// bytes reads a length and as many bytes, without copying them.
func (r *ByteReader) bytes() []byte {
	n := r.Uvarint(math.MaxInt32)
	if n > uint64(len(r.Rest)) {
		r.fail()
		return nil
	}
	data := r.Rest[:n:n]
	r.Rest = r.Rest[n:]
	return data
}

// DamagedEvent names a damaged entry of the log.
func DamagedEvent(lsn messages.LSN, p messages.PartitionID, o messages.PLogOffset, cause error) *storage.DamagedError {
	return &storage.DamagedError{Where: LogPlace(lsn), Partition: p, PLogOffset: o, Cause: cause}
}

// LogPlace names an entry of the log for error messages.
func LogPlace(lsn messages.LSN) string { return PlaceOf(BucketLog, "LSN %d", lsn) }

// Together is how many events were appended together with this one and stand behind it.
func (v *EventView) Together() uint32 { return v.together }

// Belongs returns nil if the event is the one that the index says.
func (v *EventView) Belongs(p messages.PartitionID, o messages.PLogOffset) error {
	if v.Partition != p || v.PLogOffset != o {
		return fmt.Errorf("%w: it is partition %d, offset %d", ErrMisplaced, v.Partition, v.PLogOffset)
	}
	return nil
}

// Lend makes an event of the view that shares everything with it.
func (v *EventView) Lend(e *messages.Event) {
	*e = messages.Event{
		Kind: v.kind, Epoch: v.Epoch, Partition: v.Partition, PLogOffset: v.PLogOffset, Workspace: v.Workspace,
		WorkspaceKind: v.WorkspaceKind, WLogOffset: v.WLogOffset, RegisteredAt: v.RegisteredAt, Numbers: v.numbers, Body: v.body,
		Brought: v.brought, Moves: v.moves, Records: v.Records, DedupID: v.DedupID, Together: v.together, Date: v.date,
		Zone: v.Zone, Trace: v.trace, Sections: v.sections,
	}
}
