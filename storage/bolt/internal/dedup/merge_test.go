package dedup_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// index is an index in a file of its own.
type index struct {
	t     testing.TB
	f     *boltfile.File
	stuck dedup.StuckMerges
}

func newIndex(t testing.TB) *index {
	t.Helper()
	d, err := boltfile.OpenDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := &index{t: t}
	if x.f, err = boltfile.OpenFile(d, format.StateFileName, filepath.Join(d.Path, format.StateFileName), &bbolt.Options{NoSync: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(x.f.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	})
	x.update(func(tx *bbolt.Tx) error {
		_, header := tx.CreateBucket(format.BucketHeader)
		_, blocks := tx.CreateBucket(format.BucketDedup)
		return errors.Join(header, blocks)
	})
	return x
}

func (x *index) update(fn func(tx *bbolt.Tx) error) {
	x.t.Helper()
	if err := x.f.Update(fn); err != nil {
		x.t.Fatal(err)
	}
}

// put adds the entries of a flush.
func (x *index) put(entries ...dedup.Entry) {
	x.t.Helper()
	x.update(func(tx *bbolt.Tx) (err error) {
		x.stuck, err = dedup.Put(tx, new(boltfile.ByteArena), slices.Clone(entries), x.stuck)
		return err
	})
}

// candidates returns the events that may have an id of a hash.
func (x *index) candidates(hash uint64) (lsns []messages.LSN) {
	x.t.Helper()
	err := x.f.View(func(tx *bbolt.Tx) error {
		r, err := dedup.NewReader(tx)
		if err == nil {
			lsns, err = r.Candidates(nil, hash)
		}
		return err
	})
	if err != nil {
		x.t.Fatal(err)
	}
	slices.Sort(lsns)
	return lsns
}

// runs reads the list of runs, and makes sure that the bucket holds their blocks
// and no others, without holes.
func (x *index) runs() dedup.Runs {
	x.t.Helper()
	var runs dedup.Runs
	err := x.f.View(func(tx *bbolt.Tx) (err error) {
		if runs, err = dedup.LoadRuns(tx); err != nil {
			return err
		}
		blocks := make(map[uint64][]dedup.Block)
		err = tx.Bucket(format.BucketDedup).ForEach(func(k, v []byte) error {
			b, err := dedup.DecodeBlock(k, v)
			blocks[format.Uint64(k)] = append(blocks[format.Uint64(k)], b)
			return err
		})
		for _, r := range runs.All {
			if r.Through != 0 {
				checkBlocks(x.t, &runs, r, blocks[r.Serial])
				delete(blocks, r.Serial)
			}
		}
		if len(blocks) != 0 {
			x.t.Errorf("got blocks of %d runs that have none", len(blocks))
		}
		return err
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return runs
}

// checkBlocks makes sure that a run's blocks cover what it must answer for, and that
// those that a merge has done with are gone.
func checkBlocks(t testing.TB, runs *dedup.Runs, r dedup.Run, blocks []dedup.Block) {
	t.Helper()
	for i, b := range blocks {
		if i > 0 && b.First != blocks[i-1].Last+1 {
			t.Errorf("run %d: block %d begins at %x, want %x", r.Serial, i, b.First, blocks[i-1].Last+1)
		}
	}
	if len(blocks) == 0 || blocks[len(blocks)-1].Last != r.Through {
		t.Fatalf("run %d: %d blocks do not end at %x", r.Serial, len(blocks), r.Through)
	}
	begin := uint64(0)
	if r.Into != 0 && runs.Run(r.Into).Through != 0 {
		begin = runs.Run(r.Into).Through + 1
	}
	if blocks[0].First > begin || blocks[0].Last < begin {
		t.Errorf("run %d: first block is %x to %x, want %x in it", r.Serial, blocks[0].First, blocks[0].Last, begin)
	}
}

// spoil damages the slot of a run that answers for a hash, or mends it again. It
// returns the first and the last hash of the slot.
func (x *index) spoil(serial, hash uint64) (first, last uint64) {
	x.t.Helper()
	var b dedup.Block
	x.update(func(tx *bbolt.Tx) (err error) {
		bucket := tx.Bucket(format.BucketDedup)
		if b, err = dedup.SeekBlock(bucket.Cursor(), serial, hash); err != nil {
			return err
		}
		key := dedup.AppendKey(nil, serial, b.Last)
		value := bytes.Clone(bucket.Get(key))
		value[dedup.HeadLen+4*b.Slots+4*b.SlotOf(hash)] ^= 1
		return bucket.Put(key, value)
	})
	width := (b.Last-b.First)/uint64(b.Slots) + 1
	first = b.First + uint64(b.SlotOf(hash))*width
	return first, min(b.Last, first+width-1)
}

// idleRun returns the last run that no merge is about.
func idleRun(t testing.TB, runs *dedup.Runs) uint64 {
	t.Helper()
	for _, r := range slices.Backward(runs.All) {
		if r.Into == 0 && r.Through == dedup.LastHash {
			return r.Serial
		}
	}
	t.Fatal("there is none")
	return 0
}

// Flushes of all sizes are merged into few runs, and every entry stays, those of
// equal hash included.
func TestDedupMerges(t *testing.T) {
	t.Parallel()
	x := newIndex(t)
	random := rand.New(rand.NewPCG(3, 4))
	want := make(map[uint64][]messages.LSN)
	lsn := messages.LSN(0)
	most, merging := 0, false
	for round := range 120 {
		n := 1 + random.IntN(20)
		switch {
		case round%40 == 39:
			n = 60_000
		case round%7 == 6:
			n = 4000
		}
		entries := make([]dedup.Entry, 0, n)
		for range n {
			lsn++
			hash := random.Uint64()
			if lsn%10 == 0 {
				hash = uint64(lsn%3) << 62 // the first of all among them
			}
			entries = append(entries, dedup.Entry{Hash: hash, LSN: lsn})
			want[hash] = append(want[hash], lsn)
		}
		x.put(entries...)
		runs := x.runs()
		most = max(most, len(runs.All))
		merging = merging || slices.ContainsFunc(runs.All, func(r dedup.Run) bool { return r.Into != 0 })
		checked := 0
		for hash, lsns := range want {
			if checked++; checked > 50 {
				break
			}
			if got := x.candidates(hash); !slices.Equal(got, lsns) {
				t.Fatalf("round %d, hash %x: got %d entries, want %d", round, hash, len(got), len(lsns))
			}
		}
		if got := x.candidates(random.Uint64()); len(got) != 0 {
			t.Fatalf("got %v", got)
		}
	}
	for hash, lsns := range want {
		if got := x.candidates(hash); !slices.Equal(got, lsns) {
			t.Fatalf("hash %x: got %d entries, want %d", hash, len(got), len(lsns))
		}
	}
	if most > 20 || !merging {
		t.Fatalf("got up to %d runs, merges that go on over flushes: %v", most, merging)
	}
	if runs := x.runs(); len(runs.All) > 12 {
		t.Fatalf("got %d runs of %d entries", len(runs.All), lsn)
	}
}

// Small flushes are gathered, so that a lookup asks few runs.
func TestDedupGathersSmallFlushes(t *testing.T) {
	x := newIndex(t)
	for i := range uint64(200) {
		x.put(dedup.Entry{Hash: i << 50, LSN: messages.LSN(i + 1)})
		if runs := x.runs(); len(runs.All) > dedup.FanIn {
			t.Fatalf("flush %d: got %d runs", i, len(runs.All))
		}
	}
}

// Each damage keeps the runs of one merge, and no more: the others are merged without
// them. What is whole is found.
func TestDamageDoesNotStopMerges(t *testing.T) {
	const stuckRuns = dedup.FanIn + 1 // those that are merged, and the one that is being filled
	x := newIndex(t)
	damages := 0
	hash := func(i int) uint64 { return uint64(i) << 54 }
	next := func(i int) dedup.Runs {
		x.put(dedup.Entry{Hash: hash(i), LSN: messages.LSN(i + 1)})
		runs := x.runs()
		if got, want := len(runs.All), dedup.FanIn+damages*stuckRuns; got > want {
			t.Fatalf("flush %d: got %d runs after %d damages, want at most %d", i, got, damages, want)
		}
		return runs
	}
	const flushes = 300
	for i := range flushes {
		runs := next(i)
		if i%80 == 10 {
			x.spoil(idleRun(t, &runs), dedup.LastHash)
			damages++
		}
	}
	for i := range flushes {
		if got := x.candidates(hash(i)); !slices.Equal(got, []messages.LSN{messages.LSN(i + 1)}) {
			t.Fatalf("flush %d: got %v", i, got)
		}
	}
	err := x.f.View(func(tx *bbolt.Tx) error {
		r, err := dedup.NewReader(tx)
		if err == nil {
			_, err = r.Candidates(nil, dedup.LastHash)
		}
		return err
	})
	if !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("got %v", err)
	}
	if got := len(x.stuck); got != damages {
		t.Fatalf("got %d merges that are stuck after %d damages", got, damages)
	}
	for i := range 2 * dedup.FanIn {
		x.stuck = nil // whoever opens the file anew knows of none
		next(flushes + i)
		if got := len(x.stuck); got != damages {
			t.Fatalf("opened again: got %d merges that are stuck after %d damages", got, damages)
		}
	}
}

// A block that is missing is noticed: its hashes are not taken for absent.
func TestDedupMissingBlock(t *testing.T) {
	x := newIndex(t)
	entries := make([]dedup.Entry, 4*dedup.BlockEntries)
	for i := range entries {
		entries[i] = dedup.Entry{Hash: uint64(i+1) << 51, LSN: messages.LSN(i + 1)}
	}
	x.put(entries...)
	for block := range 4 {
		of := entries[block*dedup.BlockEntries : (block+1)*dedup.BlockEntries]
		last := of[len(of)-1].Hash
		if block == 3 {
			last = dedup.LastHash
		}
		key := dedup.AppendKey(nil, 1, last)
		var value []byte
		x.update(func(tx *bbolt.Tx) error {
			value = bytes.Clone(tx.Bucket(format.BucketDedup).Get(key))
			return tx.Bucket(format.BucketDedup).Delete(key)
		})
		err := x.f.View(func(tx *bbolt.Tx) error {
			r, err := dedup.NewReader(tx)
			if err != nil {
				return err
			}
			for _, e := range entries {
				_, err := r.Candidates(nil, e.Hash)
				if lost := e.Hash >= of[0].Hash && e.Hash <= last; errors.Is(err, format.ErrMissing) != lost {
					t.Fatalf("block %d, hash %x: got %v", block, e.Hash, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		x.update(func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketDedup).Put(key, value) })
	}
}
