package bolt

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// Keys of any size are sorted, equal ones stay in their order, and what they stand for is arranged like them.
func TestSortKeys(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	p := &projection{s: open(t, t.TempDir(), testDescriptor(1, 0), Options{}), flushTables: &flushTables{}}
	for _, n := range []int{0, 1, 2, 100, 5000} {
		for _, bits := range []int{0, 3, 11, 12, 40, 64} {
			var items []sortKey
			p.keys = p.keys[:0]
			for i := range n {
				k := sortKey{random.Uint64() >> (64 - bits), uint32(i)}
				items, p.keys = append(items, k), append(p.keys, k)
			}
			want := slices.Clone(items)
			slices.SortStableFunc(want, func(a, b sortKey) int { return cmp.Compare(a.key, b.key) })
			p.sortKeys()
			expect.Equal(t, true, slices.Equal(want, p.keys), n, bits)
			arrange(items, p.keys)
			expect.Equal(t, true, slices.Equal(want, items), n, bits)
		}
	}
}
