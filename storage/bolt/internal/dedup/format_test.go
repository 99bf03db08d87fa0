package dedup

// These tests look inside: they seal spoilt slots and lists again, so that what is behind the checksums is reached,
// and nobody else decodes a list of runs or a slot.

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// genHashes draws hashes in order, some of them equal or next to each other, from a
// first to a last one.
func genHashes(t *rapid.T, first, last uint64) []uint64 {
	hash := rapid.OneOf(rapid.Uint64Range(first, last), rapid.SampledFrom([]uint64{first, last, first + (last-first)/2}))
	hashes := rapid.SliceOfN(hash, 0, 200).Draw(t, "hashes")
	slices.Sort(hashes)
	return hashes
}

func genDedupBlock(t *rapid.T) (key, value []byte, entries []Entry) {
	bounds := rapid.SliceOfN(rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, LastHash - 1, LastHash})), 2, 2).Draw(t, "bounds")
	first, last := min(bounds[0], bounds[1]), max(bounds[0], bounds[1])
	for i, h := range genHashes(t, first, last) {
		entries = append(entries, Entry{Hash: h, LSN: messages.LSN(i + 1)})
	}
	key = AppendKey(nil, rapid.Uint64().Draw(t, "serial"), last)
	return key, appendBlock([]byte("before"), key, first, entries)[6:], entries
}

// allEntries reads all slots of a block.
func allEntries(key, value []byte) ([]Entry, error) {
	b, err := DecodeBlock(key, value)
	if err != nil {
		return nil, err
	}
	return appendRange(nil, &b, b.First, b.Last)
}

func TestDedupBlockRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, value, want := genDedupBlock(t)
		if len(value) != BlockLen(len(want)) {
			t.Fatalf("got %d bytes, want %d", len(value), BlockLen(len(want)))
		}
		got, err := allEntries(key, value)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("got %v, %v, want %v", got, err, want)
		}
		b, err := DecodeBlock(key, value)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range want {
			if slot, err := b.slot(b.SlotOf(e.Hash)); err != nil || !slices.Contains(slot.list(), e) {
				t.Fatalf("got slot %v, %v, want %v in it", slot.list(), err, e)
			}
		}
	})
}

func (e dedupEntries) list() (list []Entry) {
	for i := range e.len() {
		list = append(list, e.at(i))
	}
	return list
}

// Any other key is found out by whoever reads a block, and so is any single changed bit,
// or what is read is right.
func TestDedupBlockDamageIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, value, want := genDedupBlock(t)
		spoilt := slices.Concat(key, value)
		at := rapid.IntRange(0, 8*len(spoilt)-1).Draw(t, "bit")
		spoilt[at/8] ^= 1 << (at % 8)
		key, value = spoilt[:keyLen], spoilt[keyLen:]
		if got, err := allEntries(key, value); err == nil && (at < 8*keyLen || !slices.Equal(got, want)) {
			t.Fatalf("a change of bit %d was not found: got %v, want %v", at, got, want)
		}
		b, err := DecodeBlock(key, value)
		if err != nil {
			return
		}
		for _, e := range want {
			if e.Hash < b.First || e.Hash > b.Last {
				continue
			}
			if slot, err := b.slot(b.SlotOf(e.Hash)); err == nil && !slices.Contains(slot.list(), e) {
				t.Fatalf("a change of bit %d hid %v: got %v", at, e, slot.list())
			}
		}
	})
}

func TestDedupRunsRoundTrip(t *testing.T) {
	want := Runs{next: 9, All: []Run{
		{Serial: 2, entries: 10, Through: LastHash, Into: 8}, {Serial: 5, entries: 1 << 40, Through: LastHash}, {Serial: 8, entries: 20, Through: 77},
	}}
	value := want.encode()
	got, err := decodeDedupRuns(value)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	for at := range 8 * len(value) {
		spoilt := bytes.Clone(value)
		spoilt[at/8] ^= 1 << (at % 8)
		if got, err := decodeDedupRuns(spoilt); err == nil {
			t.Fatalf("bit %d: got %+v", at, got)
		}
	}
	for name, spoil := range map[string]func(*Runs){
		"a serial that does not go up":   func(d *Runs) { d.All[1].Serial = 2 },
		"a serial of the future":         func(d *Runs) { d.next = 8 },
		"serial 0":                       func(d *Runs) { d.All[0].Serial = 0 },
		"a merge into a run not there":   func(d *Runs) { d.All[0].Into = 7 },
		"a merge that nobody can follow": func(d *Runs) { d.All[2].Serial = 7 },
	} {
		bad := Runs{next: want.next, All: slices.Clone(want.All)}
		spoil(&bad)
		if _, err := decodeDedupRuns(bad.encode()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzDecodeDedup(f *testing.F) {
	key := AppendKey(nil, 3, LastHash)
	f.Add(key, appendBlock(nil, key, 0, []Entry{{Hash: 1, LSN: 2}, {Hash: 1 << 63, LSN: 3}}))
	f.Add(key, (&Runs{next: 3, All: []Run{{Serial: 2, entries: 1, Through: LastHash}}}).encode())
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		_, _ = allEntries(key, value)
		_, _ = decodeDedupRuns(value)
		// Right checksums, so that the fuzzer reaches what is behind them.
		if runs, err := decodeDedupRuns(format.Seal(bytes.Clone(value), 0, format.BucketHeader, format.KeyDedup)); err == nil {
			again, err := decodeDedupRuns(runs.encode())
			if err != nil || !reflect.DeepEqual(again, runs) {
				t.Fatalf("got %+v, %v, want %+v", again, err, runs)
			}
		}
		b, err := DecodeBlock(key, value)
		if err != nil {
			return
		}
		for slot := range b.Slots {
			begin, end := b.bounds(slot)
			if begin <= end && end <= len(b.entries) {
				binary.BigEndian.PutUint32(b.sums[4*slot:], b.sum(slot, b.entries[begin:end]))
			}
		}
		for slot := range b.Slots {
			_, _ = b.slot(slot)
		}
		_, _ = appendRange(nil, &b, b.First, b.Last)
	})
}

// FuzzDedupBlock: whatever entries a block is made of, it gives them back, and a
// changed byte is an error or changes nothing.
func FuzzDedupBlock(f *testing.F) {
	f.Add(uint64(1), []byte{}, uint16(0), byte(1))
	f.Add(uint64(2), bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, 64), uint16(30), byte(4))
	f.Add(uint64(3), bytes.Repeat([]byte{0xff}, 160), uint16(3), byte(0x10))
	f.Fuzz(func(t *testing.T, serial uint64, raw []byte, at uint16, flip byte) {
		var entries []Entry
		for ; len(raw) >= entryLen; raw = raw[entryLen:] {
			entries = append(entries, Entry{Hash: format.Uint64(raw), LSN: messages.LSN(format.Uint64(raw[8:]))})
		}
		slices.SortFunc(entries, CompareEntries)
		first, last := uint64(0), uint64(LastHash)
		if len(entries) > 0 && serial%2 == 0 {
			first, last = entries[0].Hash, entries[len(entries)-1].Hash
		}
		key := AppendKey(nil, serial, last)
		value := appendBlock(nil, key, first, entries)
		got, err := allEntries(key, value)
		if err != nil || len(got) != len(entries) || len(got) > 0 && !reflect.DeepEqual(got, entries) {
			t.Fatalf("got %v, %v, want %v", got, err, entries)
		}
		value[int(at)%len(value)] ^= flip
		if got, err := allEntries(key, value); err == nil && flip != 0 && !reflect.DeepEqual(got, entries) {
			t.Fatalf("byte %d was changed: got %v, want %v", int(at)%len(value), got, entries)
		}
	})
}
