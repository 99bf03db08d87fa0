package format

// These tests look inside: they seal spoilt values again.

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

func TestListRoundTrip(t *testing.T) {
	key := []byte("key4")
	rapid.Check(t, func(t *rapid.T) {
		before := genNumbers(t, 3, anyNumber[messages.LSN](1), "before")
		lsns := genNumbers(t, 300, anyNumber[messages.LSN](1), "lsns")
		value := AppendList([]byte("before"), BucketPLog, key, lsns)[6:]
		got, err := DecodeList(slices.Clone(before), BucketPLog, key, value)
		if len(lsns) == 0 {
			expect.ErrorIs(t, err, ErrLayout)
			return
		}
		expect.NoError(t, err)
		expect.Equal(t, slices.Concat(before, lsns), got)
		checkSealed(t, value, func(k, v []byte) error {
			got, err := DecodeList(before, BucketPLog, k, v)
			if err != nil {
				expect.Equal(t, before, got, "a list that is refused leaves something")
			}
			return err
		})
		if _, err := DecodeList(nil, BucketIndex, key, value); err == nil {
			t.Fatalf("accepted in another bucket")
		}
	})
}

func TestListRefused(t *testing.T) {
	decode := func(k, v []byte) error {
		lsns, err := DecodeList([]messages.LSN{1}, BucketIndex, k, v)
		if err != nil {
			expect.Equal(t, []messages.LSN{1}, lsns)
		}
		return err
	}
	checkFields(t, BucketIndex, decode, []fieldsCase{
		{"two", uvarints(2, 300, 1), nil},
		{"no bytes", nil, ErrLayout},
		{"empty", uvarints(0), ErrLayout},
		{"something behind", uvarints(1, 300, 1), ErrLayout},
		{"LSN 0", uvarints(1, 0), ErrLayout},
		{"an LSN twice", uvarints(2, 300, 0), ErrLayout},
		{"LSNs that go round", uvarints(2, 300, math.MaxUint64), ErrLayout},
		{"more LSNs than bytes", uvarints(math.MaxInt32, 1), ErrLayout},
		{"a count beyond its width", uvarints(math.MaxUint64, 1), ErrLayout},
	})
}

func FuzzDecodeList(f *testing.F) {
	key := []byte("key")
	f.Add(uvarints(2, 300, 1))
	f.Add(uvarints(math.MaxInt32, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = DecodeList(nil, BucketPLog, key, data)
		lsns, err := DecodeList(nil, BucketPLog, key, Seal(slices.Clone(data), 0, BucketPLog, key))
		if err != nil {
			return
		}
		if len(lsns) == 0 || !slices.IsSorted(lsns) {
			t.Fatalf("got %v", lsns)
		}
		again, err := DecodeList(nil, BucketPLog, key, AppendList(nil, BucketPLog, key, lsns))
		expect.NoError(t, err)
		expect.Equal(t, lsns, again)
	})
}
