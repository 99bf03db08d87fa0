package tests

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/metrics"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// BenchmarkMetrics puts work with metrics and trace ids beside the same without them, storage out of the way, in turn; and
// asks for the metrics of 1,000 partitions. Bars: at most 1.1 times; 20 ms and 200 KiB.
func BenchmarkMetrics(b *testing.B) {
	b.Run("append/in-turn", func(b *testing.B) { withAndWithout(b, appendsTo) })
	b.Run("transaction/in-turn", func(b *testing.B) { withAndWithout(b, transactionsOf) })
	b.Run("page/partitions=1000", benchmarkPage)
}

// withAndWithout measures what metrics and trace ids cost, a slice with and one without in turn, so that both have the same machine.
func withAndWithout(b *testing.B, of func(*actors.Sequencer) func(int) error) {
	const slice = 20_000
	without := of(watched(b, partition.Options{}))
	with := of(watched(b, partition.Options{Observer: metrics.New(metrics.Options{}), Traces: ids.NewTraceGenerator(7, ids.TraceOptions{})}))
	check(b, with(0)) // the generator gives ids from the next second on
	var off, on time.Duration
	for b.Loop() {
		off += timed(b, slice, without)
		on += timed(b, slice, with)
	}
	b.ReportMetric(float64(on)/float64(off), "times")
	b.ReportMetric(float64(on)/float64(b.N*slice), "on-ns")
	b.ReportMetric(float64(off)/float64(b.N*slice), "off-ns")
	b.ReportMetric(0, "ns/op") // of both
}

func benchmarkPage(b *testing.B) {
	m, descriptor := metrics.New(metrics.Options{}), shop(1000)
	store := openBolt(b, b.TempDir(), descriptor, bolt.Options{})
	d := deploy(b, partition.Application{Descriptor: descriptor}, store, partition.Options{Observer: m})
	b.Cleanup(func() {
		check(b, d.parts.Close(limit(b)))
		check(b, store.Close(limit(b)))
	})
	appendToEach(b, d.app, 64)
	m.Watch(d.app, store)
	h, size := m.Handler(), 0
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", nil))
		if w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
		size = w.Body.Len()
	}
	b.ReportMetric(float64(size)/(1<<10), "KiB")
}
