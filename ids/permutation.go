package ids

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/dchest/siphash"
)

// Permutation maps the numbers from 1 to 2^bits-1 to each other, each to one and back, so that ids that follow each other
// do not look like that. It is the same for the same key and bits, for ever. The zero value has no number. It is safe for
// concurrent use.
//
// It is no secret and no protection: whoever sees many ids may learn about the key, and whoever guesses ids finds some
// if many are in use. What must not be found needs a check of who asks for it.
//
// It is a balanced Feistel network of 10 rounds, as many as FF1 has (NIST SP 800-38G), whose round function is
// SipHash-2-4 (Aumasson, Bernstein 2012) of the round, the bits and a half. What comes out beyond the domain goes in
// again until it is inside (cycle walking; Black, Rogaway 2002): twice at the most, on average.
type Permutation struct {
	k0, k1    uint64
	bits      int
	halfWidth int
}

const feistelRounds = 10

// NewPermutation returns the permutation of a key. Bits is 1 to 63, else that is [ErrDomain]: 63 is for all ids of this
// package, 53 for numbers of programs that have float64 only, as in ECMAScript.
func NewPermutation(key [16]byte, domainBits int) (Permutation, error) {
	if domainBits < 1 || domainBits > 63 {
		return Permutation{}, fmt.Errorf("%w: got %d bits, want 1 to 63", ErrDomain, domainBits)
	}
	return Permutation{
		k0: binary.LittleEndian.Uint64(key[:8]), k1: binary.LittleEndian.Uint64(key[8:]),
		bits: domainBits, halfWidth: (domainBits + 1) / 2,
	}, nil
}

// Scatter returns what a number becomes. What is not in the domain, as 0 is, becomes 0.
func (p Permutation) Scatter(n uint64) uint64 { return p.walk(n, p.forth) }

// Gather returns of what number Scatter makes this one. What is not in the domain, as 0 is, becomes 0.
func (p Permutation) Gather(n uint64) uint64 { return p.walk(n, p.back) }

// walk takes steps until it is in the domain again. It comes there: at the latest to where it began.
func (p Permutation) walk(n uint64, step func(uint64) uint64) uint64 {
	if !p.has(n) {
		return 0
	}
	for n = step(n); !p.has(n); {
		n = step(n)
	}
	return n
}

func (p Permutation) has(n uint64) bool { return n != 0 && bits.Len64(n) <= p.bits }

func (p Permutation) forth(n uint64) uint64 {
	left, right := p.split(n)
	for round := range feistelRounds {
		left, right = right, left^p.round(round, right)
	}
	return left<<p.halfWidth | right
}

func (p Permutation) back(n uint64) uint64 {
	left, right := p.split(n)
	for round := feistelRounds - 1; round >= 0; round-- {
		left, right = right^p.round(round, left), left
	}
	return left<<p.halfWidth | right
}

func (p Permutation) split(n uint64) (left, right uint64) { return n >> p.halfWidth, n & p.mask() }

func (p Permutation) mask() uint64 { return 1<<p.halfWidth - 1 }

// round is the round function. A half has 32 bits at the most.
func (p Permutation) round(round int, half uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(round)<<56|uint64(p.bits)<<48|half)
	return siphash.Hash(p.k0, p.k1, b[:]) & p.mask()
}
