package format_test

import (
	"math"
	"slices"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/replog"
)

// entries are some of each kind.
func entries() []format.Entry {
	return []format.Entry{
		{},
		{Epochs: []format.Epoch{{Partition: 1, Epoch: 300}, {Partition: 70000, Epoch: 1}}},
		{Values: [][]byte{[]byte("first"), []byte("second")}},
		{Epochs: []format.Epoch{{Partition: 3, Epoch: 2}}, Values: [][]byte{make([]byte, 300)}},
		{Values: [][]byte{[]byte("one")}, Changes: []format.Change{
			{Bucket: format.BucketSubscriptions, Key: []byte("name"), Value: make([]byte, 200)},
			{Bucket: format.BucketPositions, Key: []byte("name"), All: true},
			{Bucket: format.BucketParked, Key: []byte("key")},
			{Bucket: format.BucketHeader, Key: []byte("count"), Value: []byte{1}},
		}},
		{Generators: []format.Generator{{Launch: 99_999, Number: 1}, {Launch: 0, Number: math.MaxUint32}}},
		{
			Epochs: []format.Epoch{{Partition: 3, Epoch: 2}}, Values: [][]byte{[]byte("one")},
			Changes:    []format.Change{{Bucket: format.BucketParked, Key: []byte("key")}},
			Generators: []format.Generator{{Launch: 7, Number: 300}},
		},
	}
}

func TestEntry(t *testing.T) {
	for _, want := range entries() {
		b := want.Encode()
		got, err := format.DecodeEntry(b)
		expect.NoError(t, err)
		expect.Equal(t, want, got)
		for n := range b {
			if _, err := format.DecodeEntry(b[:n]); err == nil {
				t.Fatalf("%d of %d bytes are an entry", n, len(b))
			}
		}
		_, err = format.DecodeEntry(append(slices.Clone(b), 0))
		expect.ErrorIs(t, err, format.ErrLayout)
		for _, version := range []byte{0, b[0] ^ 3, 3} {
			b[0] = version
			if _, err := format.DecodeEntry(b); err == nil {
				t.Fatalf("an entry is one of version %d", version)
			}
		}
	}
}

// An entry has the version that all programs know which know what it says.
func TestEntryHasTheLowestVersion(t *testing.T) {
	for _, e := range entries() {
		want := byte(1)
		if len(e.Generators) > 0 {
			want = 2
		}
		expect.Equal(t, want, e.Encode()[0])
	}
	for _, b := range [][]byte{{2, 0, 0, 0, 0}, {2, 0, 0, 0, 1, 7, 0}} {
		_, err := format.DecodeEntry(b)
		expect.ErrorIs(t, err, format.ErrLayout)
	}
}

// What was decoded of any bytes is an entry, and says the same when it is encoded.
func FuzzDecodeEntry(f *testing.F) {
	for _, e := range entries() {
		f.Add(e.Encode())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := format.DecodeEntry(data)
		if err != nil {
			return
		}
		again, err := format.DecodeEntry(e.Encode())
		expect.NoError(t, err)
		expect.Equal(t, e, again)
	})
}

func TestPosition(t *testing.T) {
	want := replog.Position{Index: 1 << 40, Head: 77, Sum: 1 << 31}
	b := format.EncodePosition(format.KeyKept, want)
	got, err := format.DecodePosition(format.KeyKept, b)
	expect.NoError(t, err)
	expect.Equal(t, want, got)
	for i := range b {
		b[i] ^= 4
		_, err := format.DecodePosition(format.KeyKept, b)
		expect.ErrorIs(t, err, format.ErrChecksum)
		b[i] ^= 4
	}
	_, err = format.DecodePosition(format.KeyKept, b[1:])
	expect.ErrorIs(t, err, format.ErrLayout)
}
