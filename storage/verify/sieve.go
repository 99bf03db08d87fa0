package verify

import (
	"math"

	"github.com/partita-go/partita/messages"
)

// sieve selects the keys whose hashes lie in a range, ends included: what one pass
// over the files remembers.
type sieve struct {
	seed  uint64
	first uint64
	last  uint64
}

func newSieve(seed uint64) sieve { return sieve{seed: seed, last: math.MaxUint64} }

func (s *sieve) selects(hash uint64) bool { return hash >= s.first && hash <= s.last }

// narrow halves the range.
func (s *sieve) narrow() { s.last = s.first + (s.last-s.first)/2 }

// next moves on to the keys behind the range, with the width that was found to fit.
// It returns false if there are none.
func (s *sieve) next() bool {
	if s.last == math.MaxUint64 {
		return false
	}
	width := s.last - s.first
	s.first = s.last + 1
	s.last = s.first + min(width, math.MaxUint64-s.first)
	return true
}

// share returns what part of all keys the range selects.
func (s *sieve) share() float64 {
	return float64(s.last-s.first)/math.MaxUint64 + 1/float64(math.MaxUint64)
}

// workspace hashes a workspace's id, no two alike.
func (s *sieve) workspace(ws messages.WSID) uint64 { return scramble(uint64(ws) ^ s.seed) }

// record hashes a record's key. Two may be alike: what is found by a hash is looked
// at before it is called a fault.
func (s *sieve) record(ws messages.WSID, id messages.RecordID) uint64 {
	return scramble(scramble(s.workspace(ws)+uint64(id.Number)) + uint64(id.Seq))
}

// scramble is a bijection that spreads what is close: the finalizer of MurmurHash3.
func scramble(n uint64) uint64 {
	n ^= n >> 33
	n *= 0xff51afd7ed558ccd
	n ^= n >> 33
	n *= 0xc4ceb9fe1a85ec53
	return n ^ n>>33
}

// slot is an entry of a table. A zero value marks a slot that is free.
type slot[V comparable] struct {
	key   uint64
	value V
}

// table is a map from hashes to values that are never zero. Its memory is known, and
// what it holds can be cut down.
type table[V comparable] struct {
	slots []slot[V]
	used  int
}

const leastSlots = 1024

// find returns a key's value, nil if there is none. It is valid until the next add.
func (t *table[V]) find(key uint64) *V {
	if t.used == 0 {
		return nil
	}
	if s := t.probe(key); s.key == key && !s.free() {
		return &s.value
	}
	return nil
}

func (s *slot[V]) free() bool {
	var zero V
	return s.value == zero
}

// probe returns the key's slot, or the free one where it would go.
func (t *table[V]) probe(key uint64) *slot[V] {
	mask := uint64(len(t.slots) - 1)
	for i := key & mask; ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.free() || s.key == key {
			return s
		}
	}
}

// full reports whether the next add needs a larger table.
func (t *table[V]) full() bool { return 4*(t.used+1) > 3*len(t.slots) }

// add puts a key that is not there, and returns its value.
func (t *table[V]) add(key uint64, value V) *V {
	if t.full() {
		t.resize(max(leastSlots, 2*len(t.slots)), func(uint64) bool { return true })
	}
	s := t.probe(key)
	*s = slot[V]{key: key, value: value}
	t.used++
	return &s.value
}

// resize moves the entries that are kept into a table of another size.
func (t *table[V]) resize(slots int, keep func(uint64) bool) {
	old := t.slots
	t.slots, t.used = make([]slot[V], slots), 0
	for i := range old {
		if s := &old[i]; !s.free() && keep(s.key) {
			*t.probe(s.key) = *s
			t.used++
		}
	}
}

// clear empties the table and keeps its memory.
func (t *table[V]) clear() {
	clear(t.slots)
	t.used = 0
}
