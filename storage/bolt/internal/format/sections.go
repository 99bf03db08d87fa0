package format

import (
	"encoding/binary"
	"math"

	"github.com/partita-go/partita/messages"
)

// Sections with tags up to [messages.MaxReservedTag] are the runtime's in values of
// version eventReserved:
//
//	tag 1   deduplication id 16, not zero
//	tag 2   together, an unsigned varint, 1 to 2^32-1
//
// Each stands there once at the most. Others are kept as they are.
const (
	tagDedup    uint16 = 1
	tagTogether uint16 = 2
)

// versionOf returns the version that an event needs.
func versionOf(e *messages.Event) byte {
	if !e.DedupID.IsZero() || e.Together != 0 {
		return eventReserved
	}
	return eventVersion
}

// appendSections encodes the runtime's sections and the event's own.
func appendSections(b []byte, e *messages.Event) []byte {
	n := len(e.Sections)
	hasID, together := !e.DedupID.IsZero(), e.Together != 0
	if hasID {
		n++
	}
	if together {
		n++
	}
	b = binary.AppendUvarint(b, uint64(n))
	if hasID {
		b = appendSection(b, tagDedup, e.DedupID[:])
	}
	if together {
		var buf [binary.MaxVarintLen32]byte
		b = appendSection(b, tagTogether, binary.AppendUvarint(buf[:0], uint64(e.Together)))
	}
	for i := range e.Sections {
		b = appendSection(b, e.Sections[i].Tag, e.Sections[i].Data)
	}
	return b
}

func appendSection(b []byte, tag uint16, data []byte) []byte {
	return appendBytes(binary.AppendUvarint(b, uint64(tag)), data)
}

func (v *EventView) decodeSections(r *ByteReader, version byte) {
	clear(v.sections)
	v.sections = v.sections[:0]
	v.DedupID, v.together = messages.DedupID{}, 0
	for n := r.Count(2); n > 0 && !r.Bad; n-- {
		tag := uint16(r.Uvarint(math.MaxUint16))
		data := r.bytes()
		switch {
		case version == eventReserved && tag == tagDedup:
			v.takeDedup(r, data)
		case version == eventReserved && tag == tagTogether:
			v.takeTogether(r, data)
		default:
			v.dataLen += len(data)
			v.sections = append(v.sections, messages.Section{Tag: tag, Data: data})
		}
	}
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

func (v *EventView) takeTogether(r *ByteReader, data []byte) {
	n, width := binary.Uvarint(data)
	if v.together != 0 || width <= 0 || width != len(data) || n == 0 || n > math.MaxUint32 {
		r.fail()
		return
	}
	v.together = uint32(n)
}
