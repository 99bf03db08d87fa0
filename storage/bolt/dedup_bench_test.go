package bolt

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
)

// benchID is a different id for each number.
func benchID(n uint64) (id messages.DedupID) {
	binary.BigEndian.PutUint64(id[:], n)
	id[15] = 1
	return id
}

// fillIDs projects n ids that no event has, as flushes of some events each would.
func fillIDs(b testing.TB, s *Store, n, flush int) {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	for n > 0 {
		entries := make([]dedup.Entry, min(n, flush))
		for i := range entries {
			entries[i] = dedup.Entry{Hash: random.Uint64(), LSN: 1}
		}
		n -= len(entries)
		putEntries(b, s, entries...)
	}
}

// storedIDs is how many ids the benchmarks with a large store have.
func storedIDs() int {
	if testing.Short() {
		return 500_000
	}
	return 5_000_000
}

// BenchmarkFind looks up ids that are there, and ids that are not, in a store with
// 5,000,000 of them (500,000 with -short) out of flushes of 65,536 and of 2,000.
func BenchmarkFind(b *testing.B) {
	for _, flush := range []int{65_536, 2_000} {
		s := openBench(b, b.TempDir(), 1, Options{})
		a := newBenchAppender(b, s, 0)
		a.ids = true
		const events = 20_000
		for range events / 500 {
			if err := a.append(500); err != nil {
				b.Fatal(err)
			}
		}
		s.benchFlush(b, 0)
		fillIDs(b, s, storedIDs(), flush)
		for name, offset := range map[string]uint64{"present": 0, "absent": 1 << 40} {
			b.Run(fmt.Sprintf("flush=%d/%s", flush, name), func(b *testing.B) {
				for n := range uint64(b.N) {
					i := n * 7919 % events
					got, err := s.Find(context.Background(), messages.WSID(i%benchWorkspaces), benchID(i+offset))
					if err != nil || (got == 0) != (offset != 0) {
						b.Fatalf("got %d, %v", got, err)
					}
				}
			})
		}
		closeStore(b, s)
	}
}
