package storagetest

import (
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// BenchmarkMemory shows that what one event costs does not grow with the log:
// one append with its share of a flush of 500 events, a read of numbers, and a
// page of the tail.
func BenchmarkMemory(b *testing.B) {
	m := MemoryFactory{}.Open(b, Descriptor(messages.TrustNone))
	defer func() { _ = m.Close(b.Context()) }()
	p := Take(b, m, 0)
	const events = 500
	var batches []storage.Batch
	var flush storage.Flush
	prepare := func() {
		batches = batches[:0]
		for i := range events {
			batch := p.Build(Spec{Workspace: messages.WSID(3 * (i % 100)), Create: []messages.SeqID{SeqOrder}, Body: make([]byte, 100)})
			p.Learn(batch.Events...)
			batches = append(batches, batch)
		}
		flush = p.BuildFlush(p.Last() + 1)
		p.Flushed(p.Last() + 1)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%events == 0 {
			b.StopTimer()
			prepare()
			b.StartTimer()
		}
		if err := m.Append(b.Context(), batches[i%events]); err != nil {
			b.Fatal(err)
		}
		if _, err := m.Numbers(b.Context(), 3); err != nil {
			b.Fatal(err)
		}
		if _, err := m.Tail(b.Context(), 0, batches[i%events].Events[0].PLogOffset, 10); err != nil {
			b.Fatal(err)
		}
		if i%events == events-1 {
			if err := m.Flush(b.Context(), flush); err != nil {
				b.Fatal(err)
			}
		}
	}
}
