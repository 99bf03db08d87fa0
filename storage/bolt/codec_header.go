package bolt

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math"

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
//	kind       = WSKind name count { SeqID name initial }
//
// The descriptor is normalized; its integers are unsigned varints, the trust level
// one byte, and names are a length and bytes. The CRC covers everything before
// it. Magic and format keep their places in every format to come.
const (
	formatVersion = 3
	magic         = "partita\n"
	headerFixed   = 27

	// walFormat is that of log.wal, which counts for itself, too.
	walFormat = 1

	// subscriptionsFormat is that of subscriptions.db, which counts for itself. In the first one no position
	// says on which event it rests.
	subscriptionsFormat = 2
)

// role tells the files apart.
type role byte

const (
	roleLog   role = 'L'
	roleState role = 'S'
	// roleSubscriptions is the role of a file that is made with the first subscription.
	roleSubscriptions role = 'U'
)

func (r role) String() string {
	switch r {
	case roleLog:
		return "log"
	case roleState:
		return "state"
	case roleSubscriptions:
		return "subscriptions"
	}
	return fmt.Sprintf("role %d", byte(r))
}

// format returns the current format of the role's files.
func (r role) format() uint16 {
	if r == roleSubscriptions {
		return subscriptionsFormat
	}
	return formatVersion
}

// oldest returns the oldest format of the role's files that can be read.
func (r role) oldest() uint16 {
	if r == roleSubscriptions {
		return 1
	}
	return formatVersion
}

// storeID is drawn at random when a store is made. All its files carry it.
type storeID [16]byte

func (id storeID) String() string { return hex.EncodeToString(id[:]) }

// header is what the first lookup in a file must find.
type header struct {
	// format is what decoding found; what is encoded has the current one.
	format     uint16
	role       role
	id         storeID
	descriptor messages.Descriptor
}

func (h *header) encode() []byte {
	b := []byte(magic)
	b = binary.BigEndian.AppendUint16(b, h.role.format())
	b = append(b, byte(h.role))
	b = append(b, h.id[:]...)
	b = appendDescriptor(b, &h.descriptor)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func appendDescriptor(b []byte, d *messages.Descriptor) []byte {
	b = appendString(b, d.Application)
	b = binary.AppendUvarint(b, uint64(d.Partitions))
	b = append(b, byte(d.TrustLevel))
	b = binary.AppendUvarint(b, uint64(len(d.Kinds)))
	for _, k := range d.Kinds {
		b = binary.AppendUvarint(b, uint64(k.ID))
		b = appendString(b, k.Name)
		b = binary.AppendUvarint(b, uint64(len(k.Sequences)))
		for _, s := range k.Sequences {
			b = binary.AppendUvarint(b, uint64(s.ID))
			b = appendString(b, s.Name)
			b = binary.AppendUvarint(b, uint64(s.Initial))
		}
	}
	return b
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// decodeHeader is safe on any bytes. It returns [storage.ErrForeign] if the bytes
// are not a header, [storage.ErrFormat] if the format is unknown, and the cause
// of the damage otherwise.
func decodeHeader(value []byte) (header, error) {
	if len(value) < len(magic)+2 || string(value[:len(magic)]) != magic {
		return header{}, fmt.Errorf("%w: no header", storage.ErrForeign)
	}
	format := binary.BigEndian.Uint16(value[8:])
	r := roleLog
	if len(value) > 10 {
		r = role(value[10])
	}
	if format < r.oldest() || format > r.format() {
		return header{}, fmt.Errorf("%w: got %d, want %d to %d", storage.ErrFormat, format, r.oldest(), r.format())
	}
	if len(value) < headerFixed+4 {
		return header{}, errTruncated
	}
	end := len(value) - 4
	if crc32.Checksum(value[:end], castagnoli) != binary.BigEndian.Uint32(value[end:]) {
		return header{}, errChecksum
	}
	h := header{format: format, role: r, id: storeID(value[11:headerFixed])}
	b := byteReader{b: value[headerFixed:end]}
	h.descriptor = decodeDescriptor(&b)
	if b.bad || len(b.b) != 0 {
		return header{}, errLayout
	}
	if err := h.descriptor.Validate(); err != nil {
		return header{}, fmt.Errorf("%w: %w", errLayout, err)
	}
	return h, nil
}

func decodeDescriptor(r *byteReader) messages.Descriptor {
	d := messages.Descriptor{
		Application: string(r.bytes()),
		Partitions:  uint32(r.uvarint(math.MaxUint32)),
		TrustLevel:  messages.TrustLevel(r.byte()),
	}
	for kinds := r.count(3); kinds > 0 && !r.bad; kinds-- {
		k := messages.Kind{ID: messages.WSKind(r.uvarint(math.MaxUint16)), Name: string(r.bytes())}
		for seqs := r.count(3); seqs > 0 && !r.bad; seqs-- {
			k.Sequences = append(k.Sequences, messages.Sequence{
				ID:      messages.SeqID(r.uvarint(math.MaxUint16)),
				Name:    string(r.bytes()),
				Initial: messages.Number(r.uvarint(math.MaxUint64)),
			})
		}
		d.Kinds = append(d.Kinds, k)
	}
	return d.Normalized()
}
