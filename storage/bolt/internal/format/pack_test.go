package format

// These tests look inside: they seal spoilt values again.

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// genPack draws a pack; the data of its rows is never nil, as a decoder returns it.
func genPack(t *rapid.T) Pack {
	p := Pack{
		Workspace: messages.WSID(rapid.Uint64().Draw(t, "ws")), Seq: messages.SeqID(rapid.Uint16().Draw(t, "seq")),
		Partition: messages.PartitionID(rapid.Uint32().Draw(t, "partition")),
	}
	for _, n := range genNumbers(t, 70, anyNumber[messages.Number](1), "numbers") {
		p.Rows = append(p.Rows, Row{
			Number: n, Offset: messages.PLogOffset(rapid.Uint64().Draw(t, "offset")), LSN: anyNumber[messages.LSN](1).Draw(t, "lsn"),
			Data: append([]byte{}, genData(t, "data")...),
		})
	}
	if n := len(p.Rows); n > 0 {
		p.First, p.Last = p.Rows[0].Number, p.Rows[n-1].Number
	}
	return p
}

// A range of a pack's rows is decoded as the whole pack is.
func TestPackDecodeRange(t *testing.T) {
	key := []byte("key4")
	var got, whole Pack
	rapid.Check(t, func(t *rapid.T) {
		p := genPack(t)
		if len(p.Rows) == 0 {
			return
		}
		value := p.Append(nil, key)
		from, to := anyNumber[messages.Number](0).Draw(t, "from"), anyNumber[messages.Number](0).Draw(t, "to")
		if rapid.Bool().Draw(t, "of the pack") {
			from, to = rapid.SampledFrom(p.Rows).Draw(t, "first").Number, rapid.SampledFrom(p.Rows).Draw(t, "last").Number
		}
		expect.NoError(t, whole.Decode(key, value))
		expect.NoError(t, got.DecodeRange(key, value, from, to))
		want := []Row{}
		for _, row := range whole.Rows {
			if row.Number >= from && row.Number <= to {
				want = append(want, row)
			}
		}
		expect.Equal(t, whole.First, got.First)
		expect.Equal(t, whole.Last, got.Last)
		expect.Equal(t, want, append([]Row{}, got.Rows...))
	})
}

func TestPackRoundTrip(t *testing.T) {
	key := []byte("key4")
	var got Pack // reused, as a reader does
	rapid.Check(t, func(t *rapid.T) {
		p := genPack(t)
		value := p.Append([]byte("before"), key)[6:]
		if len(p.Rows) == 0 {
			expect.ErrorIs(t, got.Decode(key, value), ErrLayout)
			return
		}
		expect.NoError(t, got.Decode(key, value))
		expect.Equal(t, p, got)
		for i := range got.Rows {
			if data := got.Rows[i].Data; len(data) != cap(data) {
				t.Fatalf("row %d: appending to its data would overwrite the next one's", i)
			}
		}
		var other Pack
		checkSealed(t, value, other.Decode)
	})
}

func TestPackRefused(t *testing.T) {
	var p Pack
	pack := func(rest ...uint64) []byte { return append([]byte{packVersion}, uvarints(rest...)...) }
	checkFields(t, BucketPacks, p.Decode, []fieldsCase{
		{"two", append(pack(1, 16, 3, 2, 5, zigzag(9), zigzag(8), 1, 3, zigzag(-1), zigzag(-2), 2), "abc"...), nil},
		{"no data", pack(1, 16, 3, 1, math.MaxUint64, 2, 2, 0), nil},
		{"no bytes", nil, ErrLayout},
		{"version 0", []byte{0, 1, 16, 3, 1, 5, 2, 2, 0}, ErrVersion},
		{"a newer version", []byte{packVersion + 1, 1, 16, 3, 1, 5, 2, 2, 0}, ErrVersion},
		{"a sequence beyond its width", pack(1, 1<<16, 3, 1, 5, 2, 2, 0), ErrLayout},
		{"a partition beyond its width", pack(1, 16, 1<<32, 1, 5, 2, 2, 0), ErrLayout},
		{"no rows", pack(1, 16, 3, 0), ErrLayout},
		{"more rows than bytes", pack(1, 16, 3, math.MaxInt32, 5, 2, 2, 0), ErrLayout},
		{"record 0", pack(1, 16, 3, 1, 0, 2, 2, 0), ErrLayout},
		{"a record twice", pack(1, 16, 3, 2, 5, 2, 2, 0, 0, 2, 2, 0), ErrLayout},
		{"numbers that go round", pack(1, 16, 3, 2, 5, 2, 2, 0, math.MaxUint64, 2, 2, 0), ErrLayout},
		{"LSN 0", pack(1, 16, 3, 1, 5, 2, 0, 0), ErrLayout},
		{"less data", append(pack(1, 16, 3, 1, 5, 2, 2, 2), 'a'), ErrLayout},
		{"more data", append(pack(1, 16, 3, 1, 5, 2, 2, 2), "abc"...), ErrLayout},
		{"data longer than all", append(pack(1, 16, 3, 1, 5, 2, 2, math.MaxInt32), 'a'), ErrLayout},
		{"a length beyond its width", append(pack(1, 16, 3, 1, 5, 2, 2, math.MaxUint64), 'a'), ErrLayout},
	})
}

func FuzzDecodePack(f *testing.F) {
	key := []byte("key")
	p := Pack{Workspace: 1, Seq: 16, Partition: 3, Rows: []Row{{Number: 5, Offset: 9, LSN: 8, Data: []byte("a")}, {Number: 8, Offset: 8, LSN: 7}}}
	value := p.Append(nil, key)
	f.Add(value[:len(value)-SealedOverhead])
	f.Add([]byte{packVersion, 1, 16, 3, 1, 5, 2, 2, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, again Pack
		_ = got.Decode(key, data)
		if got.Decode(key, Seal(slices.Clone(data), 0, BucketPacks, key)) != nil {
			return
		}
		expect.NoError(t, again.Decode(key, got.Append(nil, key)))
		expect.Equal(t, got, again)
	})
}

func TestPackEntryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := PackEntry{ID: PackID(rapid.Uint64Min(1).Draw(t, "id")), First: messages.Number(rapid.Uint64Range(1, math.MaxUint64-1).Draw(t, "first"))}
		e.Last = messages.Number(rapid.Uint64Range(uint64(e.First), math.MaxUint64-1).Draw(t, "last"))
		e.Next = messages.Number(rapid.Uint64Min(uint64(e.Last)+1).Draw(t, "next"))
		k := RecordKey{Workspace: messages.WSID(rapid.Uint64().Draw(t, "ws")), ID: messages.RecordID{
			Seq: messages.SeqID(rapid.Uint16().Draw(t, "seq")), Number: e.First,
		}}
		key := AppendIndexKey(nil, k)
		expect.Equal(t, k, ParseRecordKey(key))
		value := e.Append([]byte("before"), key)[6:]
		got, err := DecodePackEntry(key, value)
		expect.NoError(t, err)
		expect.Equal(t, e, got)
		at := rapid.IntRange(0, 8*(len(key)+len(value))-1).Draw(t, "bit")
		both := append(bytes.Clone(key), value...)
		both[at/8] ^= 1 << (at % 8)
		if _, err := DecodePackEntry(both[:len(key)], both[len(key):]); err == nil {
			t.Fatalf("a change of bit %d was not found", at)
		}
	})
}

func TestPackEntryRefused(t *testing.T) {
	key := bytes.Repeat([]byte{1}, IndexKeyLen)
	first := Uint64(key[IndexPrefixLen:])
	decode := func(k, v []byte) error { _, err := DecodePackEntry(k, v); return err }
	checkFields(t, BucketIndex, decode, []fieldsCase{
		{"one row", uvarints(7, first, 1), nil},
		{"nothing behind it", uvarints(7, first, 0), ErrLayout},
		{"one before another", uvarints(7, first+2, 1), nil},
		{"no bytes", nil, ErrLayout},
		{"pack 0", uvarints(0, first, 1), ErrLayout},
		{"it ends before it begins", uvarints(7, first-1, 1), ErrLayout},
		{"numbers that go round", uvarints(7, first, math.MaxUint64-2), ErrLayout},
		{"something behind", uvarints(7, first, 1, 0), ErrLayout},
	})
	e := PackEntry{ID: 1, First: 1, Last: 2, Next: 3}
	expect.ErrorIs(t, decode(key[1:], e.Append(nil, key[1:])), ErrLayout)
	none := make([]byte, IndexKeyLen)
	expect.ErrorIs(t, decode(none, e.Append(nil, none)), ErrLayout, "record 0")
}

func FuzzDecodePackEntry(f *testing.F) {
	key := AppendIndexKey(nil, RecordKey{Workspace: 1, ID: messages.RecordID{Seq: 16, Number: 5}})
	f.Add(key, uvarints(7, 5, 3))
	f.Add(key[1:], uvarints(7, 5, 1))
	f.Fuzz(func(t *testing.T, key, data []byte) {
		_, _ = DecodePackEntry(key, data)
		e, err := DecodePackEntry(key, Seal(slices.Clone(data), 0, BucketIndex, key))
		if err != nil {
			return
		}
		again, err := DecodePackEntry(key, e.Append(nil, key))
		expect.NoError(t, err)
		expect.Equal(t, e, again)
	})
}

// Errors of state.db name what is damaged.
func TestDamageNames(t *testing.T) {
	key := RecordKey{Workspace: 3, ID: messages.RecordID{Seq: 16, Number: 5}}
	log := RecordKey{Workspace: 3, ID: messages.RecordID{Seq: messages.SeqWLogOffset, Number: 65}}
	for want, err := range map[string]*storage.DamagedError{
		"bucket workspaces, workspace 3":                                   DamagedHead(3, ErrChecksum),
		"bucket packs, pack 9, workspace 3, records from":                  DamagedPack(key, 9, ErrChecksum),
		"bucket index, workspace 3, sequence 16, records from number 5 on": DamagedIndex(AppendIndexKey(nil, key), ErrChecksum),
		"bucket index, workspace 3, sequence 1, log from offset 65 on":     DamagedIndex(AppendIndexKey(nil, log), ErrChecksum),
		"bucket index, key 0102":                                           DamagedIndex([]byte{1, 2}, ErrChecksum),
	} {
		if !strings.HasPrefix(err.Where, want) || !errors.Is(err, ErrChecksum) || !errors.Is(err, storage.ErrDamaged) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
