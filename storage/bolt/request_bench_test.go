package bolt

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// BenchmarkRequest prepares batches for the committer, of so many events each.
func BenchmarkRequest(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			s := openBench(b, b.TempDir(), 1, Options{})
			defer closeStore(b, s)
			batch := storage.Batch{Epoch: 1}
			for i := range n {
				batch.Events = append(batch.Events, benchEvent(0, 1, messages.PLogOffset(i+1), messages.WSID(i), 1))
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.request(&batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkNewWorkspaces looks ahead for batches of the first events of workspaces, beside 100,000 others that state.db
// has, and flushes them.
func BenchmarkNewWorkspaces(b *testing.B) {
	const partitions = 16
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			s := openBench(b, b.TempDir(), partitions, Options{})
			defer closeStore(b, s)
			a := newBenchAppender(b, s, 0)
			batch := func(ws func(i int) uint64, n int) storage.Batch {
				batch := storage.Batch{Epoch: a.epoch}
				for i := range n {
					batch.Events = append(batch.Events, benchEvent(0, a.epoch, a.next+messages.PLogOffset(i), messages.WSID(partitions*ws(i)), 1))
				}
				return batch
			}
			for at := 0; at < 100_000; at += 1000 {
				if err := s.Append(b.Context(), batch(func(i int) uint64 { return 64 * uint64(at+i) }, 1000)); err != nil {
					b.Fatal(err)
				}
				a.next += 1000
			}
			s.benchFlush(b, 0)
			rnd := rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				bt := batch(func(int) uint64 { return 1 + 64*rnd.Uint64N(100_000) + rnd.Uint64N(63) }, n)
				r, err := s.request(&bt)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if err := s.checkAhead(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
