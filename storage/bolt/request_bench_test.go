package bolt

import (
	"fmt"
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
