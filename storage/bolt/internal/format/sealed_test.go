package format

// This looks inside: it seals spoilt values again.

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// checkSealed makes sure that a value, which lies under "key4", is accepted there and as it is only.
func checkSealed(t *rapid.T, value []byte, decode func(key, value []byte) error) {
	key := []byte("key4")
	expect.NoError(t, decode(key, value))
	if decode([]byte("key5"), value) == nil {
		t.Fatalf("accepted under another key")
	}
	at := rapid.IntRange(0, 8*len(value)-1).Draw(t, "bit")
	damaged := bytes.Clone(value)
	damaged[at/8] ^= 1 << (at % 8)
	if decode(key, damaged) == nil {
		t.Fatalf("a change of bit %d was not found", at)
	}
	if n := rapid.IntRange(0, len(value)-1).Draw(t, "length"); decode(key, value[:n:n]) == nil {
		t.Fatalf("accepted after %d of %d bytes", n, len(value))
	}
	if decode(key, append(bytes.Clone(value), 0)) == nil {
		t.Fatalf("accepted with a byte more")
	}
}

// uvarints encodes a value's fields.
func uvarints(fields ...uint64) (b []byte) {
	for _, n := range fields {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// zigzag is an uvarint that reads as a difference.
func zigzag(n int64) uint64 { return uint64(n<<1) ^ uint64(n>>63) }

// fieldsCase is a value with a right checksum.
type fieldsCase struct {
	what string
	data []byte
	want error
}

func checkFields(t *testing.T, bucket []byte, decode func(key, value []byte) error, cases []fieldsCase) {
	t.Helper()
	key := bytes.Repeat([]byte{1}, IndexKeyLen)
	for _, c := range cases {
		err := decode(key, Seal(bytes.Clone(c.data), 0, bucket, key))
		expect.ErrorIs(t, err, c.want, c.what)
		// Whatever is cut off is missed.
		for n := range c.data {
			if c.want == nil && decode(key, Seal(bytes.Clone(c.data[:n]), 0, bucket, key)) == nil {
				t.Errorf("%s: accepted after %d of %d bytes", c.what, n, len(c.data))
			}
		}
	}
	if decode(key, []byte{1, 2, 3}) == nil {
		t.Error("accepted without a checksum")
	}
}
