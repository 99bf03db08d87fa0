package dedup_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
)

// awaitFilter waits until a filter knows something.
func awaitFilter(t testing.TB, f *dedup.Filter) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for hash := uint64(0); !f.Absent(hash); hash += 1 << 55 {
		if runtime.Gosched(); time.Now().After(end) {
			t.Fatal("the filter knows nothing")
		}
	}
}

// newEntries returns entries of ids that nobody has had.
func newEntries(random *rand.Rand, n int) []dedup.Entry {
	entries := make([]dedup.Entry, n)
	for i := range entries {
		entries[i] = dedup.Entry{Hash: random.Uint64(), LSN: 1}
	}
	return entries
}

// wantAbsent wants so many of 10,000 ids that nobody has had to be known for absent.
func wantAbsent(t *testing.T, f *dedup.Filter, random *rand.Rand, least int) {
	t.Helper()
	absent := 0
	for range 10_000 {
		if f.Absent(random.Uint64()) {
			absent++
		}
	}
	if absent < least {
		t.Errorf("got %d of 10,000 absent, want at least %d", absent, least)
	}
}

var errGivenUp = errors.New("given up")

// TestFilterNeverMisses: whatever is written, given up, merged and opened again, before, while and after a filter is
// filled, it never takes an entry that is there for absent.
func TestFilterNeverMisses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := newIndex(t)
		random := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(rt, "seed")))
		size := rapid.SampledFrom([]int64{0, 1000, 30_000, 1 << 20}).Draw(rt, "size")
		f := dedup.NewFilter(x.f, size)
		defer func() { f.Await() }()
		var hashes []uint64
		check := func() {
			for range min(len(hashes), 200) {
				if hash := hashes[random.IntN(len(hashes))]; f.Absent(hash) {
					rt.Fatalf("%x is there", hash)
				}
			}
		}
		flush := func(n int, fate error) {
			entries := make([]dedup.Entry, n)
			for i := range entries {
				entries[i] = dedup.Entry{Hash: random.Uint64(), LSN: messages.LSN(i + 1)}
				if random.IntN(100) == 0 {
					entries[i].Hash = uint64(random.IntN(3)) << 63
				}
			}
			err := x.f.Update(func(tx *bbolt.Tx) (err error) {
				f.Add(entries)
				if x.stuck, err = dedup.Put(tx, new(boltfile.ByteArena), slices.Clone(entries), x.stuck); err != nil {
					return err
				}
				return fate
			})
			if !errors.Is(err, fate) {
				rt.Fatal(err)
			}
			if fate == nil {
				for i := range entries {
					hashes = append(hashes, entries[i].Hash)
				}
			}
		}
		sizes := rapid.SampledFrom([]int{1, 50, 2000, 17_000})
		rt.Repeat(map[string]func(*rapid.T){
			"flush":    func(t *rapid.T) { flush(sizes.Draw(t, "n"), nil) },
			"given up": func(t *rapid.T) { flush(sizes.Draw(t, "n"), errGivenUp) },
			"opened again": func(*rapid.T) {
				f.Await()
				f, x.stuck = dedup.NewFilter(x.f, size), nil
			},
			"filled": func(*rapid.T) {
				if size == 1<<20 && len(hashes) < 100_000 {
					awaitFilter(t, f)
				}
			},
			"": func(*rapid.T) { check() },
		})
		for _, hash := range hashes {
			if f.Absent(hash) {
				rt.Fatalf("%x is there", hash)
			}
		}
	})
}

// TestFilterIsFilled: with what several runs have, one of them half merged; and with what comes meanwhile.
func TestFilterIsFilled(t *testing.T) {
	x := newIndex(t)
	random := rand.New(rand.NewPCG(7, 8))
	var hashes []uint64
	put := func(n int) {
		entries := make([]dedup.Entry, n)
		for i := range entries {
			entries[i] = dedup.Entry{Hash: random.Uint64(), LSN: 1}
			hashes = append(hashes, entries[i].Hash)
		}
		x.put(entries...)
	}
	merging := func() bool {
		runs := x.runs()
		return slices.ContainsFunc(runs.All, func(r dedup.Run) bool { return r.Into != 0 && runs.Run(r.Into).Through != 0 })
	}
	for range dedup.FanIn {
		put(5000)
	}
	for put(1); !merging(); put(1) {
	}
	f := dedup.NewFilter(x.f, 1<<20)
	awaitFilter(t, f)
	f.Await()
	for _, hash := range hashes {
		if f.Absent(hash) {
			t.Fatalf("%x is there", hash)
		}
	}
	wantAbsent(t, f, random, 9900)
}

// TestFilterBeforeTheFirstLook: what is added before somebody looks takes its room once, be it as much as the filter has room
// for.
func TestFilterBeforeTheFirstLook(t *testing.T) {
	x := newIndex(t)
	random := rand.New(rand.NewPCG(5, 6))
	f := dedup.NewFilter(x.f, 1<<20)
	for range 20 {
		entries := newEntries(random, 8000)
		f.Add(entries)
		x.put(entries...)
	}
	awaitFilter(t, f)
	wantAbsent(t, f, random, 9000)
}

// TestFilterBesideAFlush: a layer is for what its transaction has, not for what a flush brings before it is made.
func TestFilterBesideAFlush(t *testing.T) {
	x := newIndex(t)
	random := rand.New(rand.NewPCG(9, 1))
	// A file that grows waits for those who read: it has room.
	room := []byte("room")
	x.update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket(room)
		return errors.Join(err, b.Put(room, make([]byte, 4<<20)))
	})
	x.update(func(tx *bbolt.Tx) error { return tx.DeleteBucket(room) })
	x.put(dedup.Entry{Hash: 1, LSN: 1})
	f := dedup.NewFilter(x.f, 1<<20)
	before := x.f.DB.Stats().TxN
	release := f.BeginHeld()
	for x.f.DB.Stats().TxN == before {
		runtime.Gosched()
	}
	x.put(newEntries(random, 17_000)...)
	release()
	f.Await()
	wantAbsent(t, f, random, 9000)
}

// TestFilterOfDamage: a filter that cannot read all is sure of nothing, so that whoever looks is told.
func TestFilterOfDamage(t *testing.T) {
	x := newIndex(t)
	x.put(dedup.Entry{Hash: 1, LSN: 1}, dedup.Entry{Hash: 3 << 62, LSN: 2})
	x.spoil(1, dedup.LastHash)
	f := dedup.NewFilter(x.f, 1<<20)
	f.Absent(5)
	f.Await()
	for hash := range uint64(64) {
		if f.Absent(hash << 58) {
			t.Fatalf("%x is known to be absent", hash<<58)
		}
	}
}

// TestFilterIsNotFilledLate: nothing is read once the file is about to be closed.
func TestFilterIsNotFilledLate(t *testing.T) {
	x := newIndex(t)
	f := dedup.NewFilter(x.f, 1<<20)
	f.Await()
	for hash := range uint64(64) {
		if f.Absent(hash << 58) {
			t.Fatal("it was filled")
		}
	}
}
