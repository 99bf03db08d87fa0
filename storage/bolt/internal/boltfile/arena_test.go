package boltfile

import (
	"bytes"
	"testing"
)

// What is reserved in a transaction is nobody else's, and the next one takes no more memory.
func TestByteArena(t *testing.T) {
	var a ByteArena
	size := int64(0)
	for transaction := range 3 {
		var all [][]byte
		for i, n := range []int{1, arenaChunk - 1, 0, 7, 3 * arenaChunk, arenaChunk / 2, arenaChunk} {
			all = append(all, append(a.Reserve(n), bytes.Repeat([]byte{byte(i)}, n)...))
		}
		for i, piece := range all {
			if len(piece) != cap(piece) || bytes.Count(piece, []byte{byte(i)}) != len(piece) {
				t.Errorf("transaction %d: piece %d of %d bytes was written by another one", transaction, i, len(piece))
			}
		}
		if got := a.Size(); transaction > 0 && got != size {
			t.Errorf("transaction %d: got %d bytes, want the %d of the first one", transaction, got, size)
		}
		size = a.Size()
		a.Reset()
	}
}
