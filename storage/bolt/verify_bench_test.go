package bolt

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/verify"
)

// verifiedEvents and verifiedWorkspaces are those of the store that BenchmarkVerify checks.
const (
	verifiedEvents     = 200_000
	verifiedWorkspaces = 100_000
)

// BenchmarkVerify checks a store of 200,000 events of 100,000 workspaces (a tenth with -short), all
// projected: in one pass, and in several, since it may remember 8 MiB only. Bars: 300,000 events/s in
// one pass; and what is on the heap at its peak, garbage too, at most 32 MiB more than verify may
// remember, which it may do twice for a moment where a table is rebuilt.
func BenchmarkVerify(b *testing.B) {
	dir, events := benchVerified(b)
	for _, memory := range []int64{256, 8} {
		b.Run(fmt.Sprintf("memory=%dMiB", memory), func(b *testing.B) {
			peak, passes := uint64(0), 0
			for b.Loop() {
				b.StopTimer()
				runtime.GC() // what making the store has left is not counted
				b.StartTimer()
				o := verify.Options{MaxMemory: memory << 20, Progress: func(p verify.Progress) {
					peak, passes = max(peak, onHeap()), p.Pass
				}}
				report, err := Verify(context.Background(), dir, o)
				if err != nil || report.FaultCount != 0 || report.Events != events {
					b.Fatalf("got %d events, %d faults, error %v, want %d events without a fault", report.Events, report.FaultCount, err, events)
				}
			}
			b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
			b.ReportMetric(float64(passes), "passes")
		})
	}
}

// benchVerified makes the store: each workspace of a partition gets an event in its turn.
func benchVerified(b *testing.B) (dir string, events uint64) {
	const partitions, batch = 4, 5000
	n, workspaces := verifiedEvents, verifiedWorkspaces
	if testing.Short() {
		n, workspaces = n/10, workspaces/10
	}
	dir = b.TempDir()
	s := openBench(b, dir, partitions, Options{TailEvents: 1 << 30, Memory: 1 << 42})
	defer closeStore(b, s)
	for id := range messages.PartitionID(partitions) {
		reg, err := s.TakeEpoch(context.Background(), id)
		if err != nil {
			b.Fatal(err)
		}
		for from := 0; from < n/partitions; from += batch {
			all := storage.Batch{Partition: id, Epoch: reg.Epoch}
			for i := from; i < from+batch; i++ {
				turn, place := i/(workspaces/partitions), i%(workspaces/partitions)
				ws := messages.WSID(partitions*uint64(place) + uint64(id))
				all.Events = append(all.Events, benchEvent(id, reg.Epoch, messages.PLogOffset(i+1), ws, messages.WLogOffset(turn+1)))
			}
			if err := s.Append(context.Background(), all); err != nil {
				b.Fatal(err)
			}
		}
		s.benchFlush(b, id)
	}
	return dir, uint64(n)
}

// onHeap returns the bytes on the heap, those that nobody uses any more too.
func onHeap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
