package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/partita-go/partita/messages"
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
//	numbers  = count { SeqID first more }     runs first, first+1 … first+more of one sequence
//	body     = length bytes
//	records  = count { flags SeqID number length bytes }     flags: bit 0 new
//	sections = count { tag length bytes }     see codec_sections.go
//
// The version is 2 if the runtime has sections of its own in it, else 1.
//
// Everything is an unsigned varint but the time, which is a zigzag varint, and
// kind and flags, which are one byte each. Nothing may follow.
const (
	eventVersion   = 1
	eventReserved  = 2
	eventHeaderLen = 5
)

// maxEventSize bounds an event's value in bytes.
const maxEventSize = 16 << 20

const recordFlagNew = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Causes of damage.
var (
	errChecksum  = errors.New("checksum does not match")
	errTruncated = errors.New("value is too short")
	errLayout    = errors.New("value has a wrong layout")
	errVersion   = errors.New("value has an unknown version")
	errMisplaced = errors.New("value belongs to another key")
	errMissing   = errors.New("value is missing")
)

// appendPayload encodes an event's payload.
func appendPayload(b []byte, e *messages.Event) []byte {
	b = append(b, byte(e.Kind))
	b = binary.AppendUvarint(b, uint64(e.Epoch))
	b = binary.AppendUvarint(b, uint64(e.Partition))
	b = binary.AppendUvarint(b, uint64(e.PLogOffset))
	b = binary.AppendUvarint(b, uint64(e.Workspace))
	b = binary.AppendUvarint(b, uint64(e.WorkspaceKind))
	b = binary.AppendUvarint(b, uint64(e.WLogOffset))
	b = binary.AppendVarint(b, int64(e.RegisteredAt))
	b = appendNumbers(b, e.Numbers)
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

func appendNumbers(b []byte, numbers []messages.SequenceNumber) []byte {
	runs := 0
	for i := 0; i < len(numbers); i += runLen(numbers[i:]) {
		runs++
	}
	b = binary.AppendUvarint(b, uint64(runs))
	for i := 0; i < len(numbers); {
		n := runLen(numbers[i:])
		b = binary.AppendUvarint(b, uint64(numbers[i].Seq))
		b = binary.AppendUvarint(b, uint64(numbers[i].Number))
		b = binary.AppendUvarint(b, uint64(n-1))
		i += n
	}
	return b
}

// runLen returns how many numbers at the head follow each other in one sequence.
func runLen(numbers []messages.SequenceNumber) int {
	n := 1
	for n < len(numbers) && numbers[n].Seq == numbers[0].Seq &&
		numbers[n].Number == numbers[0].Number+messages.Number(n) && numbers[n].Number != 0 {
		n++
	}
	return n
}

func appendBytes(b, data []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(data)))
	return append(b, data...)
}

// encodeEvent encodes an event without its LSN; sealEvent makes it complete.
func encodeEvent(e *messages.Event) []byte {
	b := make([]byte, eventHeaderLen, eventHeaderLen+sizeHint(e))
	b = appendPayload(b, e)
	b[0] = versionOf(e)
	binary.BigEndian.PutUint32(b[1:], crc32.Update(0, castagnoli, b[eventHeaderLen:]))
	return b
}

// sizeHint estimates the length of an event's payload from above, but for many
// scattered numbers.
func sizeHint(e *messages.Event) int {
	n := 96 + 8*len(e.Numbers) + len(e.Body)
	for i := range e.Records {
		n += 18 + len(e.Records[i].Data)
	}
	for i := range e.Sections {
		n += 8 + len(e.Sections[i].Data)
	}
	return n
}

// sealEvent finishes the checksum of an event encoded by encodeEvent. It is
// called once per value: the LSN is known to the committer only.
func sealEvent(value []byte, lsn messages.LSN) {
	binary.BigEndian.PutUint32(value[1:], finishCRC(binary.BigEndian.Uint32(value[1:]), value[0], lsn))
}

// finishCRC continues a payload's CRC over the version and the LSN.
func finishCRC(crc uint32, version byte, lsn messages.LSN) uint32 {
	var tail [9]byte
	tail[0] = version
	binary.BigEndian.PutUint64(tail[1:], uint64(lsn))
	return updateCRC(crc, tail[:])
}

// eventView is a decoded event that still points into the encoded value: body,
// rows and sections are valid as long as the value is. It is reused from value to
// value, so that a scan allocates nothing per event.
type eventView struct {
	lsn        messages.LSN
	crc        uint32
	kind       messages.EventKind
	epoch      messages.Epoch
	partition  messages.PartitionID
	offset     messages.PLogOffset
	ws         messages.WSID
	wsKind     messages.WSKind
	wlog       messages.WLogOffset
	at         messages.Timestamp
	numbers    []messages.SequenceNumber
	records    []messages.Record
	body       []byte
	dedup      messages.DedupID
	together   uint32
	sections   []messages.Section
	dataLen    int
	numberings []messages.SequenceNumber
}

// decode reads a value and verifies it against the LSN that is its key. It is
// safe on any bytes.
func (v *eventView) decode(lsn messages.LSN, value []byte) error {
	v.lsn = lsn
	if len(value) < eventHeaderLen {
		return errTruncated
	}
	if value[0] != eventVersion && value[0] != eventReserved {
		return fmt.Errorf("%w: got %d, want %d or %d", errVersion, value[0], eventVersion, eventReserved)
	}
	payload := value[eventHeaderLen:]
	v.crc = binary.BigEndian.Uint32(value[1:])
	if finishCRC(crc32.Update(0, castagnoli, payload), value[0], lsn) != v.crc {
		return errChecksum
	}
	r := byteReader{b: payload}
	v.decodeHead(&r)
	v.decodeNumbers(&r)
	v.body = r.bytes()
	v.decodeRecords(&r)
	v.decodeSections(&r, value[0])
	if r.bad || len(r.b) != 0 {
		return errLayout
	}
	return nil
}

func (v *eventView) decodeHead(r *byteReader) {
	v.kind = messages.EventKind(r.byte())
	v.epoch = messages.Epoch(r.uvarint(math.MaxUint64))
	v.partition = messages.PartitionID(r.uvarint(math.MaxUint32))
	v.offset = messages.PLogOffset(r.uvarint(math.MaxUint64))
	v.ws = messages.WSID(r.uvarint(math.MaxUint64))
	v.wsKind = messages.WSKind(r.uvarint(math.MaxUint16))
	v.wlog = messages.WLogOffset(r.uvarint(math.MaxUint64))
	v.at = messages.Timestamp(r.varint())
}

func (v *eventView) decodeNumbers(r *byteReader) {
	v.numbers = v.numbers[:0]
	for runs := r.count(3); runs > 0 && !r.bad; runs-- {
		seq := messages.SeqID(r.uvarint(math.MaxUint16))
		first := r.uvarint(math.MaxUint64)
		more := r.uvarint(messages.MaxEventNumbers)
		if r.bad || first > math.MaxUint64-more || uint64(len(v.numbers))+more >= messages.MaxEventNumbers {
			r.fail()
			return
		}
		for n := uint64(0); n <= more; n++ {
			v.numbers = append(v.numbers, messages.SequenceNumber{Seq: seq, Number: messages.Number(first + n)})
		}
	}
}

func (v *eventView) decodeRecords(r *byteReader) {
	clear(v.records)
	v.records = v.records[:0]
	v.dataLen = len(v.body)
	for n := r.count(4); n > 0 && !r.bad; n-- {
		flags := r.byte()
		if flags > recordFlagNew {
			r.fail()
			return
		}
		id := messages.RecordID{Seq: messages.SeqID(r.uvarint(math.MaxUint16)), Number: messages.Number(r.uvarint(math.MaxUint64))}
		data := r.bytes()
		v.dataLen += len(data)
		v.records = append(v.records, messages.Record{ID: id, New: flags == recordFlagNew, Data: data})
	}
}

// event returns a copy that shares nothing with the value or with the view.
func (v *eventView) event() messages.Event {
	e := messages.Event{
		Kind:          v.kind,
		Epoch:         v.epoch,
		Partition:     v.partition,
		PLogOffset:    v.offset,
		Workspace:     v.ws,
		WorkspaceKind: v.wsKind,
		WLogOffset:    v.wlog,
		RegisteredAt:  v.at,
		DedupID:       v.dedup,
		Together:      v.together,
	}
	if len(v.numbers) > 0 {
		e.Numbers = append(make([]messages.SequenceNumber, 0, len(v.numbers)), v.numbers...)
	}
	arena := make([]byte, 0, v.dataLen)
	e.Body, arena = take(arena, v.body)
	if len(v.records) > 0 {
		e.Records = append(make([]messages.Record, 0, len(v.records)), v.records...)
		for i := range e.Records {
			e.Records[i].Data, arena = take(arena, e.Records[i].Data)
		}
	}
	if len(v.sections) > 0 {
		e.Sections = append(make([]messages.Section, 0, len(v.sections)), v.sections...)
		for i := range e.Sections {
			e.Sections[i].Data, arena = take(arena, e.Sections[i].Data)
		}
	}
	return e
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

// numbering returns the numbers given out and the ids of new records that are not
// among them: what [messages.Event.Numbering] lists. The slice is the view's.
func (v *eventView) numbering() []messages.SequenceNumber {
	v.numberings = append(v.numberings[:0], v.numbers...)
	v.numberings = messages.AppendExplicit(v.numberings, v.numbers, v.records)
	return v.numberings
}

// byteReader reads a payload. Once something was wrong it reads zeros.
type byteReader struct {
	b   []byte
	bad bool
}

func (r *byteReader) fail() { r.bad, r.b = true, nil }

func (r *byteReader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *byteReader) uvarint(limit uint64) uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 { // every limit is above 127
		n := uint64(r.b[0])
		r.b = r.b[1:]
		return n
	}
	n, width := binary.Uvarint(r.b)
	if width <= 0 || n > limit {
		r.fail()
		return 0
	}
	r.b = r.b[width:]
	return n
}

func (r *byteReader) varint() int64 {
	n, width := binary.Varint(r.b)
	if width <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[width:]
	return n
}

// count reads how many items follow, each of which takes at least size bytes.
func (r *byteReader) count(size int) int {
	n := r.uvarint(math.MaxInt32)
	if n > uint64(len(r.b)/size) {
		r.fail()
		return 0
	}
	return int(n)
}

// bytes reads a length and as many bytes, without copying them.
func (r *byteReader) bytes() []byte {
	n := r.uvarint(math.MaxInt32)
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	data := r.b[:n:n]
	r.b = r.b[n:]
	return data
}
