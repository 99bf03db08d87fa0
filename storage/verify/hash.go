package verify

import (
	"encoding/binary"
	"hash/maphash"
)

// hasher sums numbers and byte strings so that no two different lists of them
// are written alike.
type hasher struct{ maphash.Hash }

func newHasher(seed maphash.Seed) *hasher {
	h := &hasher{}
	h.SetSeed(seed)
	return h
}

func (h *hasher) number(ns ...uint64) {
	var b [8]byte
	for _, n := range ns {
		binary.LittleEndian.PutUint64(b[:], n)
		_, _ = h.Write(b[:])
	}
}

func (h *hasher) bytes(b []byte) {
	h.number(uint64(len(b)))
	_, _ = h.Write(b)
}
