package partition

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"slices"

	"github.com/partita-go/partita/messages"
)

// Cursor is a position in the feed of an application: behind which event of each partition
// to go on. The zero cursor is the beginning. Its text has letters, digits, "-" and "_"
// only; programs that keep it need not know what is in it.
type Cursor struct {
	application string
	// next is the offset of each partition's next event.
	next []messages.PLogOffset
	// turn is the partition that is looked at first.
	turn uint32
}

// cursorVersion is the first byte of a cursor's text. Then follow the application (FNV-1a of
// its name, 4 bytes), as varints the number of partitions, the turn, and the offset before
// each partition's next, and CRC-32C of it all.
const cursorVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// IsZero reports whether the cursor is the beginning, of any application.
func (c Cursor) IsZero() bool { return c.next == nil }

// String returns the cursor as text, for [Reader.ParseCursor]; "" for the zero cursor.
func (c Cursor) String() string {
	if c.IsZero() {
		return ""
	}
	b := binary.BigEndian.AppendUint32([]byte{cursorVersion}, fingerprint(c.application))
	b = binary.AppendUvarint(b, uint64(len(c.next)))
	b = binary.AppendUvarint(b, uint64(c.turn))
	for _, o := range c.next {
		b = binary.AppendUvarint(b, uint64(o-1))
	}
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return base64.RawURLEncoding.EncodeToString(b)
}

func fingerprint(application string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(application)) // never fails
	return h.Sum32()
}

// ParseCursor returns the cursor that a text is, or ErrCursor.
func (r *Reader) ParseCursor(text string) (Cursor, error) {
	d := r.store.Descriptor()
	c := Cursor{application: d.Application}
	if text == "" {
		return Cursor{}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < 5+4 {
		return Cursor{}, fmt.Errorf("%w: damaged", ErrCursor)
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	switch {
	case crc32.Checksum(body, castagnoli) != sum:
		return Cursor{}, fmt.Errorf("%w: damaged", ErrCursor)
	case body[0] != cursorVersion:
		return Cursor{}, fmt.Errorf("%w: got version %d, want %d", ErrCursor, body[0], cursorVersion)
	case binary.BigEndian.Uint32(body[1:]) != fingerprint(d.Application):
		return Cursor{}, fmt.Errorf("%w: it is not of application %q", ErrCursor, d.Application)
	}
	if !c.decode(body[5:], d.Partitions) {
		return Cursor{}, fmt.Errorf("%w: it is not of %d partitions", ErrCursor, d.Partitions)
	}
	// One text for one cursor: base64 and varints have others that mean the same.
	if c.String() != text {
		return Cursor{}, fmt.Errorf("%w: damaged", ErrCursor)
	}
	return c, nil
}

// decode reads the varints of a cursor.
func (c *Cursor) decode(b []byte, partitions uint32) bool {
	var values []uint64
	for len(b) > 0 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return false
		}
		values, b = append(values, v), b[n:]
	}
	if len(values) < 2 || values[0] != uint64(partitions) || values[1] >= uint64(partitions) || uint64(len(values)-2) != values[0] {
		return false
	}
	c.turn = uint32(values[1])
	c.next = make([]messages.PLogOffset, 0, partitions)
	for _, v := range values[2:] {
		c.next = append(c.next, messages.PLogOffset(v)+1)
	}
	return !slices.Contains(c.next, 0)
}
