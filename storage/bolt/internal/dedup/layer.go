package dedup

import (
	"math/bits"
	"sync/atomic"
)

// A layer is a Bloom filter whose bits of one hash lie in one line of the processor's cache. Hashes are the first
// bytes of SHA-256 already: the product with the number of lines says which one, and what is left of it which bits.
const (
	lineWords = 8
	lineBytes = lineWords * 8
	// hashBits is how many bits a hash sets. With leastBits an entry, three would be as good, with wantedBits eight.
	hashBits = 4
	// wantedBits is how many bits an entry gets: then 1 in 140 looks into state.db is for nothing.
	wantedBits = 12
	// leastBits is how few there may be: 1 in 6.
	leastBits = 4
)

type layer struct {
	words []atomic.Uint64
	// entries is how many were added. Only whoever adds needs it.
	entries int
}

// newLayer returns a layer of so many bytes: whole lines, and at least one.
func newLayer(size int) *layer {
	return &layer{words: make([]atomic.Uint64, size/8)}
}

func (l *layer) bytes() int { return len(l.words) * 8 }

// room is for how many more entries there are so many bits each; below 0 there are fewer already.
func (l *layer) room(bitsEach int) int { return l.bytes()*8/bitsEach - l.entries }

// line returns the line of a hash, and what says which bits.
func (l *layer) line(hash uint64) (line []atomic.Uint64, rest uint64) {
	at, rest := bits.Mul64(hash, uint64(len(l.words)/lineWords))
	return l.words[at*lineWords:][:lineWords], rest
}

// bit takes the next bit of a line out of what is left of the hash.
func bit(rest uint64) (word int, mask, left uint64) {
	return int(rest >> 61), 1 << (rest >> 55 & 63), rest << 9
}

// add may run while others look.
func (l *layer) add(hash uint64) {
	line, rest := l.line(hash)
	for range hashBits {
		word, mask, left := bit(rest)
		if line[word].Load()&mask == 0 {
			line[word].Or(mask)
		}
		rest = left
	}
}

// has reports whether a hash may have been added.
func (l *layer) has(hash uint64) bool {
	line, rest := l.line(hash)
	for range hashBits {
		word, mask, left := bit(rest)
		if line[word].Load()&mask == 0 {
			return false
		}
		rest = left
	}
	return true
}
