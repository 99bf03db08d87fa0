package format

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// The header of each file, in bucket header under key "header":
//
//	 0        8         10     11         27
//	+--------+---------+------+----------+----------------+---------+
//	| magic  | format  | role | store id | descriptor     | CRC-32C |
//	| 8      | 2, BE   | 1    | 16       |                | 4, BE   |
//	+--------+---------+------+----------+----------------+---------+
//
//	descriptor = application partitions trust-level count { kind }
//	kind       = WSKind name count { SeqID name initial [ largest restart formats ] }
//	restart    = unit [ first-month zone keep ahead ]
//	formats    = count { length bytes }
//
// The descriptor is normalized; its integers are unsigned varints, the trust level a byte, and so
// are the unit of time, which is 0 if the sequence never restarts, and the first month; ahead is a zigzag
// varint. Names are a length and bytes. There are no rules in files of formats that had none, and in
// subscriptions.db. The CRC covers everything before it. Magic and format keep their places in every
// format to come.
const (
	// Version is the format of log.db. That of format 4 can have all events that one of format 5 has, but programs wrote
	// and read it that passed over zones and moves of sequences, and gave out numbers again.
	Version     = 5
	Magic       = "partita\n"
	HeaderFixed = 27

	// WALFormat is that of log.wal, which counts for itself, too.
	WALFormat = 1

	// StateFormat is that of state.db. One of an older format is made anew from the log.
	StateFormat = 6

	// SubscriptionsFormat is that of subscriptions.db, which counts for itself. In the first one no position
	// says on which event it rests.
	SubscriptionsFormat = 2

	// IDsFormat is that of ids.db, which counts for itself.
	IDsFormat = 1
)

// oldest returns the oldest format of the role's files whose header can be read.
func (r Role) oldest() uint16 {
	if r == RoleSubscriptions || r == RoleIDs {
		return 1
	}
	return 3
}

// hasRules reports whether the rules of sequences stand in the headers of a format.
func (r Role) hasRules(format uint16) bool {
	switch r {
	case RoleLog:
		return format >= 4
	case RoleState:
		return format >= 5
	case RoleSubscriptions, RoleIDs:
	}
	return false
}

// StoreID is drawn at random when a store is made. All its files carry it.
type StoreID [16]byte

func (id StoreID) String() string { return hex.EncodeToString(id[:]) }

// Header is what the first lookup in a file must find.
type Header struct {
	// Format is what decoding found; what is encoded has the current one.
	Format     uint16
	Role       Role
	ID         StoreID
	Descriptor messages.Descriptor
}

// Encode returns the header in the current format.
func (h *Header) Encode() []byte {
	b := []byte(Magic)
	b = binary.BigEndian.AppendUint16(b, h.Role.format())
	b = append(b, byte(h.Role))
	b = append(b, h.ID[:]...)
	b = appendDescriptor(b, &h.Descriptor, h.Role.hasRules(h.Role.format()))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, Castagnoli))
}

// AppendDescriptor appends a descriptor, which must be normalized.
func AppendDescriptor(b []byte, d *messages.Descriptor) []byte { return appendDescriptor(b, d, true) }

func appendDescriptor(b []byte, d *messages.Descriptor, rules bool) []byte {
	b = appendBytes(b, d.Application)
	b = binary.AppendUvarint(b, uint64(d.Partitions))
	b = append(b, byte(d.TrustLevel))
	b = binary.AppendUvarint(b, uint64(len(d.Kinds)))
	for _, k := range d.Kinds {
		b = binary.AppendUvarint(b, uint64(k.ID))
		b = appendBytes(b, k.Name)
		b = binary.AppendUvarint(b, uint64(len(k.Sequences)))
		for _, s := range k.Sequences {
			b = binary.AppendUvarint(b, uint64(s.ID))
			b = appendBytes(b, s.Name)
			b = binary.AppendUvarint(b, uint64(s.Initial))
			if rules {
				b = appendRules(b, &s)
			}
		}
	}
	return b
}

// DecodeHeader is safe on any bytes. It returns [storage.ErrForeign] if the bytes
// are not a header, [storage.ErrFormat] if the format is unknown, [calendar.ErrZone] if this
// machine does not know a time zone of a sequence, and the cause of the damage otherwise.
func DecodeHeader(value []byte) (Header, error) {
	if len(value) < len(Magic)+2 || string(value[:len(Magic)]) != Magic {
		return Header{}, fmt.Errorf("%w: no header", storage.ErrForeign)
	}
	format := binary.BigEndian.Uint16(value[8:])
	r := RoleLog
	if len(value) > 10 {
		r = Role(value[10])
	}
	if format < r.oldest() || format > r.format() {
		return Header{}, fmt.Errorf("%w: got %d, want %d to %d", storage.ErrFormat, format, r.oldest(), r.format())
	}
	if len(value) < HeaderFixed+4 {
		return Header{}, ErrTruncated
	}
	end := len(value) - 4
	if crc32.Checksum(value[:end], Castagnoli) != binary.BigEndian.Uint32(value[end:]) {
		return Header{}, ErrChecksum
	}
	h := Header{Format: format, Role: r, ID: StoreID(value[11:HeaderFixed])}
	b := ByteReader{Rest: value[HeaderFixed:end]}
	h.Descriptor = decodeDescriptor(&b, r, format)
	if b.Bad || len(b.Rest) != 0 {
		return Header{}, ErrLayout
	}
	switch err := h.Descriptor.Validate(); {
	case errors.Is(err, calendar.ErrZone):
		// The store is whole: a machine with another zone database has made it.
		return Header{}, err
	case err != nil:
		return Header{}, fmt.Errorf("%w: %w", ErrLayout, err)
	}
	return h, nil
}

func decodeDescriptor(r *ByteReader, of Role, format uint16) messages.Descriptor {
	d := messages.Descriptor{
		Application: string(r.bytes()),
		Partitions:  uint32(r.Uvarint(math.MaxUint32)),
		TrustLevel:  messages.TrustLevel(r.byte()),
	}
	for kinds := r.Count(3); kinds > 0 && !r.Bad; kinds-- {
		k := messages.Kind{ID: messages.WSKind(r.Uvarint(math.MaxUint16)), Name: string(r.bytes())}
		for seqs := r.Count(3); seqs > 0 && !r.Bad; seqs-- {
			k.Sequences = append(k.Sequences, decodeSequence(r, of, format))
		}
		d.Kinds = append(d.Kinds, k)
	}
	return d.Normalized()
}

func decodeSequence(r *ByteReader, of Role, format uint16) messages.Sequence {
	s := messages.Sequence{
		ID:      messages.SeqID(r.Uvarint(math.MaxUint16)),
		Name:    string(r.bytes()),
		Initial: messages.Number(r.Uvarint(math.MaxUint64)),
	}
	switch {
	case of.hasRules(format):
		s.Largest = messages.Number(r.Uvarint(math.MaxUint64))
		s.Restart = decodeRestart(r)
		for formats := r.Count(1); formats > 0 && !r.Bad; formats-- {
			s.Formats = append(s.Formats, string(r.bytes()))
		}
	case of == RoleSubscriptions && s.Initial <= messages.LargestDefault:
		s.Largest = s.Initial // it is not known, and what the log has extends this
	default:
		s.Largest = math.MaxUint64 // before there were rules, sequences went on to the end
	}
	return s
}

func appendRules(b []byte, s *messages.Sequence) []byte {
	b = binary.AppendUvarint(b, uint64(s.Largest))
	b = appendRestart(b, &s.Restart)
	b = binary.AppendUvarint(b, uint64(len(s.Formats)))
	for _, f := range s.Formats {
		b = appendBytes(b, f)
	}
	return b
}

func appendRestart(b []byte, r *messages.Restart) []byte {
	b = append(b, byte(r.Every))
	if r.Every == calendar.Never {
		return b
	}
	b = appendBytes(append(b, byte(r.FirstMonth)), r.Zone)
	return binary.AppendVarint(binary.AppendUvarint(b, uint64(r.Keep)), int64(r.Ahead))
}

func decodeRestart(r *ByteReader) (restart messages.Restart) {
	if restart.Every = calendar.Unit(r.byte()); restart.Every == calendar.Never {
		return messages.Restart{}
	}
	restart.FirstMonth = time.Month(r.byte())
	restart.Zone = string(r.bytes())
	restart.Keep = int(r.Uvarint(messages.MaxKeep))
	restart.Ahead = int(r.varint())
	return restart
}
