package boltfile

import (
	"bytes"
	"testing"
)

// What is reserved in a transaction is nobody else's. Chunks serve again; what is larger than one does not.
func TestByteArena(t *testing.T) {
	var a ByteArena
	for transaction := range 3 {
		var all [][]byte
		for i, n := range []int{1, arenaChunk - 1, 0, 7, 2*arenaChunk + transaction, arenaChunk / 2, arenaChunk} {
			all = append(all, append(a.Reserve(n), bytes.Repeat([]byte{byte(i)}, n)...))
		}
		for i, piece := range all {
			if len(piece) != cap(piece) || bytes.Count(piece, []byte{byte(i)}) != len(piece) {
				t.Errorf("transaction %d: piece %d of %d bytes was written by another one", transaction, i, len(piece))
			}
		}
		if got, want := a.Size(), int64(3*arenaChunk); got != want {
			t.Errorf("transaction %d: got %d bytes, want %d", transaction, got, want)
		}
		a.Reset()
	}
}
