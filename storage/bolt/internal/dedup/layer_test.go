package dedup

// These tests look inside: how many bits an entry has, and what the layers take.

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestLayerFindsWhatWasAdded: also where hashes are not spread, and lines are full.
func TestLayerFindsWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLayer(lineBytes * rapid.IntRange(1, 64).Draw(t, "lines"))
		hash := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 8), rapid.Uint64Range(LastHash-8, LastHash))
		hashes := rapid.SliceOfN(hash, 1, 300).Draw(t, "hashes")
		for _, h := range hashes {
			l.add(h)
		}
		for _, h := range hashes {
			if !l.has(h) {
				t.Fatalf("%x was added", h)
			}
		}
	})
}

// TestLayerIsSelective: with the bits wanted 1 in 100 of the others passes at most, with the least 1 in 4.
func TestLayerIsSelective(t *testing.T) {
	const entries = 100_000
	random := rand.New(rand.NewPCG(1, 2))
	for bits, most := range map[int]int{wantedBits: entries / 100, leastBits: entries / 4} {
		l := newLayer(entries * bits / 8 / lineBytes * lineBytes)
		for range entries {
			l.add(random.Uint64())
		}
		passed := 0
		for range entries {
			if l.has(random.Uint64()) {
				passed++
			}
		}
		t.Logf("%d bits: %d of %d pass", bits, passed, entries)
		if passed > most {
			t.Errorf("%d bits: %d of %d pass, want at most %d", bits, passed, entries, most)
		}
	}
}

// TestFilterStaysWithinItsSize: whatever is added. It is off when an entry would have less than the least bits, and not
// before most of its size is used.
func TestFilterStaysWithinItsSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(0, 200), rapid.IntRange(10_000, 1_000_000)).Draw(t, "size")
		f := NewFilter(nil, int64(size))
		f.begun.Store(true)
		f.complete = true
		f.publish()
		entries := make([]Entry, rapid.IntRange(1, 50_000).Draw(t, "flush"))
		random, added := rand.New(rand.NewPCG(3, rapid.Uint64().Draw(t, "seed"))), 0
		for range 100 {
			for i := range entries {
				entries[i].Hash = random.Uint64()
			}
			f.Add(entries)
			taken := 0
			for _, l := range f.layers {
				taken += l.bytes()
				if l.room(leastBits) < 0 {
					t.Fatalf("a layer of %d bytes has %d entries", l.bytes(), l.entries)
				}
			}
			if taken > size {
				t.Fatalf("got %d bytes, want at most %d", taken, size)
			}
			if f.off {
				break
			}
			added += len(entries)
			if f.Absent(entries[0].Hash) {
				t.Fatal("an entry that was added is absent")
			}
		}
		if f.off && (f.Absent(random.Uint64()) || f.layers != nil || f.ready.Load() != nil) {
			t.Fatal("it is off, and knows something")
		}
		// At most five layers lack room for one flush more.
		if f.off && added+5*len(entries)+2*lineBytes < size*8/leastBits {
			t.Fatalf("off with %d entries and %d bytes", added, size)
		}
	})
}
