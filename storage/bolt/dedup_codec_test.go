package bolt

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
)

// genHashes draws hashes in order, some of them equal or next to each other, from a
// first to a last one.
func genHashes(t *rapid.T, first, last uint64) []uint64 {
	hash := rapid.OneOf(rapid.Uint64Range(first, last), rapid.SampledFrom([]uint64{first, last, first + (last-first)/2}))
	hashes := rapid.SliceOfN(hash, 0, 200).Draw(t, "hashes")
	slices.Sort(hashes)
	return hashes
}

func genDedupBlock(t *rapid.T) (key, value []byte, entries []dedupEntry) {
	bounds := rapid.SliceOfN(rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, lastHash - 1, lastHash})), 2, 2).Draw(t, "bounds")
	first, last := min(bounds[0], bounds[1]), max(bounds[0], bounds[1])
	for i, h := range genHashes(t, first, last) {
		entries = append(entries, dedupEntry{hash: h, lsn: messages.LSN(i + 1)})
	}
	key = appendDedupKey(nil, rapid.Uint64().Draw(t, "serial"), last)
	return key, appendDedupBlock([]byte("before"), key, first, entries)[6:], entries
}

// allEntries reads all slots of a block.
func allEntries(key, value []byte) ([]dedupEntry, error) {
	b, err := decodeDedupBlock(key, value)
	if err != nil {
		return nil, err
	}
	return appendRange(nil, &b, b.first, b.last)
}

func TestDedupBlockRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, value, want := genDedupBlock(t)
		if len(value) != dedupBlockLen(len(want)) {
			t.Fatalf("got %d bytes, want %d", len(value), dedupBlockLen(len(want)))
		}
		got, err := allEntries(key, value)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("got %v, %v, want %v", got, err, want)
		}
		b, err := decodeDedupBlock(key, value)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range want {
			if slot, err := b.slot(b.slotOf(e.hash)); err != nil || !slices.Contains(slot.list(), e) {
				t.Fatalf("got slot %v, %v, want %v in it", slot.list(), err, e)
			}
		}
	})
}

func (e dedupEntries) list() (list []dedupEntry) {
	for i := range e.len() {
		list = append(list, e.at(i))
	}
	return list
}

// Any other key is found out by who reads a block, and so is any single changed bit,
// or what is read is right.
func TestDedupBlockDamageIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, value, want := genDedupBlock(t)
		spoilt := slices.Concat(key, value)
		at := rapid.IntRange(0, 8*len(spoilt)-1).Draw(t, "bit")
		spoilt[at/8] ^= 1 << (at % 8)
		key, value = spoilt[:dedupKeyLen], spoilt[dedupKeyLen:]
		if got, err := allEntries(key, value); err == nil && (at < 8*dedupKeyLen || !slices.Equal(got, want)) {
			t.Fatalf("a change of bit %d was not found: got %v, want %v", at, got, want)
		}
		b, err := decodeDedupBlock(key, value)
		if err != nil {
			return
		}
		for _, e := range want {
			if e.hash < b.first || e.hash > b.last {
				continue
			}
			if slot, err := b.slot(b.slotOf(e.hash)); err == nil && !slices.Contains(slot.list(), e) {
				t.Fatalf("a change of bit %d hid %v: got %v", at, e, slot.list())
			}
		}
	})
}

func TestDedupRunsRoundTrip(t *testing.T) {
	want := dedupRuns{next: 9, runs: []dedupRun{
		{serial: 2, entries: 10, through: lastHash, into: 8}, {serial: 5, entries: 1 << 40, through: lastHash}, {serial: 8, entries: 20, through: 77},
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
	for name, spoil := range map[string]func(*dedupRuns){
		"a serial that does not go up":   func(d *dedupRuns) { d.runs[1].serial = 2 },
		"a serial of the future":         func(d *dedupRuns) { d.next = 8 },
		"serial 0":                       func(d *dedupRuns) { d.runs[0].serial = 0 },
		"a merge into a run not there":   func(d *dedupRuns) { d.runs[0].into = 7 },
		"a merge that nobody can follow": func(d *dedupRuns) { d.runs[2].serial = 7 },
	} {
		bad := dedupRuns{next: want.next, runs: slices.Clone(want.runs)}
		spoil(&bad)
		if _, err := decodeDedupRuns(bad.encode()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzDecodeDedup(f *testing.F) {
	key := appendDedupKey(nil, 3, lastHash)
	f.Add(key, appendDedupBlock(nil, key, 0, []dedupEntry{{hash: 1, lsn: 2}, {hash: 1 << 63, lsn: 3}}))
	f.Add(key, (&dedupRuns{next: 3, runs: []dedupRun{{serial: 2, entries: 1, through: lastHash}}}).encode())
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		_, _ = allEntries(key, value)
		_, _ = decodeDedupRuns(value)
		// Right checksums, so that the fuzzer reaches what is behind them.
		if runs, err := decodeDedupRuns(seal(bytes.Clone(value), 0, bucketHeader, keyDedup)); err == nil {
			again, err := decodeDedupRuns(runs.encode())
			if err != nil || !reflect.DeepEqual(again, runs) {
				t.Fatalf("got %+v, %v, want %+v", again, err, runs)
			}
		}
		b, err := decodeDedupBlock(key, value)
		if err != nil {
			return
		}
		for slot := range b.slots {
			begin, end := b.bounds(slot)
			if begin <= end && end <= len(b.entries) {
				binary.BigEndian.PutUint32(b.sums[4*slot:], b.sum(slot, b.entries[begin:end]))
			}
		}
		for slot := range b.slots {
			_, _ = b.slot(slot)
		}
		_, _ = appendRange(nil, &b, b.first, b.last)
	})
}
