package format

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
)

// Sections with tags up to [messages.MaxReservedTag] are the runtime's in values of
// version eventReserved or eventPeriods:
//
//	tag 1   deduplication id 16, not zero
//	tag 2   together, an unsigned varint, 1 to 2^32-1
//	tag 3   business date, an unsigned varint, yyyymmdd; in version eventPeriods only
//	tag 4   zone of the workspace, its name; in version eventPeriods only
//	tag 5   brought { SeqID period number }, unsigned varints: how many of the numbers, from the first one on,
//	        were brought along, and the moves; not both none; in version eventPeriods only
//	tag 6   trace id, 8, BE, not zero
//
// Each stands there once at the most. Others of the runtime are a newer program's: an event with one is
// refused. All others are kept as they are.
const (
	tagDedup    uint16 = 1
	tagTogether uint16 = 2
	tagDate     uint16 = 3
	tagZone     uint16 = 4
	tagTaken    uint16 = 5
	tagTrace    uint16 = 6
)

// versionOf returns the version that an event needs.
func versionOf(e *messages.Event) byte {
	if e.Date != 0 || e.Zone != "" || takesOver(e) || slices.ContainsFunc(e.Numbers, func(n messages.SequenceNumber) bool { return n.Period != 0 }) {
		return eventPeriods
	}
	if !e.DedupID.IsZero() || e.Together != 0 || e.Trace != 0 {
		return eventReserved
	}
	return eventVersion
}

// takesOver reports whether an event brings numbers along or moves sequences.
func takesOver(e *messages.Event) bool { return e.Brought != 0 || len(e.Moves) > 0 }

// moveSize is how many bytes a move takes at most.
const moveSize = 3 + 5 + binary.MaxVarintLen64

// appendSections encodes the runtime's sections and the event's own.
func appendSections(b []byte, e *messages.Event) []byte {
	n := len(e.Sections)
	hasID, together, dated, zoned, taken, traced := !e.DedupID.IsZero(), e.Together != 0, e.Date != 0, e.Zone != "", takesOver(e), e.Trace != 0
	for _, has := range [...]bool{hasID, together, dated, zoned, taken, traced} {
		if has {
			n++
		}
	}
	b = binary.AppendUvarint(b, uint64(n))
	var buf [8]byte // the longest of the runtime's but the deduplication id
	if hasID {
		b = appendSection(b, tagDedup, e.DedupID[:])
	}
	if together {
		b = appendSection(b, tagTogether, binary.AppendUvarint(buf[:0], uint64(e.Together)))
	}
	if dated {
		b = appendSection(b, tagDate, binary.AppendUvarint(buf[:0], uint64(e.Date)))
	}
	if zoned {
		b = appendSection(b, tagZone, e.Zone)
	}
	if taken {
		b = appendSection(b, tagTaken, encodeTaken(e))
	}
	if traced {
		b = appendSection(b, tagTrace, binary.BigEndian.AppendUint64(buf[:0], uint64(e.Trace)))
	}
	for i := range e.Sections {
		b = appendSection(b, e.Sections[i].Tag, e.Sections[i].Data)
	}
	return b
}

func encodeTaken(e *messages.Event) []byte {
	b := binary.AppendUvarint(nil, uint64(e.Brought))
	for _, n := range e.Moves {
		b = binary.AppendUvarint(b, uint64(n.Seq))
		b = binary.AppendUvarint(b, uint64(n.Period))
		b = binary.AppendUvarint(b, uint64(n.Number))
	}
	return b
}

func appendSection[T []byte | string](b []byte, tag uint16, data T) []byte {
	return appendBytes(binary.AppendUvarint(b, uint64(tag)), data)
}

// decodeSections returns the tag of a section that is a newer program's, 0 if there is none.
func (v *EventView) decodeSections(r *ByteReader, version byte) (newer uint16) {
	clear(v.sections)
	v.sections = v.sections[:0]
	v.DedupID, v.together, v.date, v.Zone, v.trace = messages.DedupID{}, 0, 0, "", 0
	v.brought, v.moves = 0, v.moves[:0]
	for n := r.Count(2); n > 0 && !r.Bad; n-- {
		tag := uint16(r.Uvarint(math.MaxUint16))
		data := r.bytes()
		switch {
		case version < eventReserved || tag == 0 || tag > messages.MaxReservedTag:
			v.dataLen += len(data)
			v.sections = append(v.sections, messages.Section{Tag: tag, Data: data})
		case !v.takeReserved(r, version, tag, data):
			newer = tag
		}
	}
	return newer
}

// takeReserved takes a section of the runtime's. It reports whether it knows the tag.
func (v *EventView) takeReserved(r *ByteReader, version byte, tag uint16, data []byte) bool {
	switch {
	case tag == tagDedup:
		v.takeDedup(r, data)
	case tag == tagTogether:
		takeOnce(r, data, &v.together)
	case tag == tagTrace:
		v.takeTrace(r, data)
	case version < eventPeriods:
		return false
	case tag == tagDate:
		takeOnce(r, data, &v.date)
	case tag == tagZone:
		v.takeZone(r, data)
	case tag == tagTaken:
		v.takeTaken(r, data)
	default:
		return false
	}
	return true
}

func (v *EventView) takeZone(r *ByteReader, data []byte) {
	if v.Zone != "" || len(data) > calendar.MaxZoneName || !calendar.IsZoneName(string(data)) {
		r.fail()
		return
	}
	v.Zone = string(data)
}

func (v *EventView) takeDedup(r *ByteReader, data []byte) {
	if !v.DedupID.IsZero() || len(data) != len(v.DedupID) {
		r.fail()
		return
	}
	if v.DedupID = messages.DedupID(data); v.DedupID.IsZero() {
		r.fail()
	}
}

func (v *EventView) takeTrace(r *ByteReader, data []byte) {
	if v.trace != 0 || len(data) != 8 {
		r.fail()
		return
	}
	if v.trace = ids.TraceID(binary.BigEndian.Uint64(data)); v.trace == 0 {
		r.fail()
	}
}

// takeTaken takes what the event brought along and moved, unless it is there already.
func (v *EventView) takeTaken(r *ByteReader, data []byte) {
	if v.brought != 0 || len(v.moves) > 0 {
		r.fail()
		return
	}
	from := ByteReader{Rest: data}
	v.brought = uint32(from.Uvarint(messages.MaxEventNumbers))
	for len(from.Rest) > 0 {
		v.moves = append(v.moves, messages.SequenceNumber{
			Seq: messages.SeqID(from.Uvarint(math.MaxUint16)), Period: calendar.Date(from.Uvarint(math.MaxUint32)),
			Number: messages.Number(from.Uvarint(math.MaxUint64)),
		})
	}
	if from.Bad || int(v.brought) > len(v.numbers) || v.brought == 0 && len(v.moves) == 0 || len(v.moves) > messages.MaxEventNumbers {
		r.fail()
	}
}

// takeOnce takes a number that is not 0, unless there is one already.
func takeOnce[N ~uint32](r *ByteReader, data []byte, to *N) {
	n, width := binary.Uvarint(data)
	if *to != 0 || width <= 0 || width != len(data) || n == 0 || n > math.MaxUint32 {
		r.fail()
		return
	}
	*to = N(n)
}
