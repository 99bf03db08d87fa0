package deque

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// Whatever is pushed and dropped, each item that is left has the index that it was pushed with.
func TestItemsKeepTheirIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d Deque[uint64]
		first := uint64(rapid.IntRange(0, 3*chunkLen).Draw(t, "first"))
		d.Restart(first)
		end := first
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			for range rapid.IntRange(0, 2*chunkLen).Draw(t, "push") {
				d.Push(end)
				end++
			}
			first += uint64(rapid.IntRange(0, int(end-first)).Draw(t, "drop"))
			d.Drop(first)
			expect.Equal(t, int(end-first), d.Len())
			expect.Equal(t, first, d.First)
			expect.Equal(t, end, d.End)
			all := d.Copy(nil, first, end)
			for i := range all {
				expect.Equal(t, first+uint64(i), all[i])
				expect.Equal(t, first+uint64(i), *d.At(first + uint64(i)))
			}
		}
	})
}
