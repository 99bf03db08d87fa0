package format_test

import (
	"slices"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/replog"
)

func TestEntry(t *testing.T) {
	for _, want := range []format.Entry{
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
	} {
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
		b[0]++
		if _, err := format.DecodeEntry(b); err == nil {
			t.Fatal("an entry of another version is one")
		}
	}
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
