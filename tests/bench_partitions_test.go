package tests

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// BenchmarkPartitions deploys an application with the largest number of partitions over a
// new store, appends to each partition once, stops, and deploys it once more. Bars: ready
// within 10 s both times, and in 1 GiB for the whole process; the stop is clean, which is
// within StopLimit, 30 s. The peak is of all of it: 256 callers wake all partitions within
// seconds. What it says of the heap is without garbage.
func BenchmarkPartitions(b *testing.B) {
	for _, partitions := range []uint32{4096, messages.MaxPartitions} {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			for b.Loop() {
				benchmarkPartitions(b, partitions)
			}
		})
	}
}

func benchmarkPartitions(b *testing.B, partitions uint32) {
	descriptor, dir := shop(partitions), b.TempDir()
	debug.FreeOSMemory() // what the run before has left is none of this one's
	before := heap()
	atReady, peak := samplePeak(memoryOfSystem), samplePeak(memoryOfSystem)
	store := openBolt(b, dir, descriptor, bolt.Options{})
	begin := time.Now()
	d := deploy(b, partition.Application{Descriptor: descriptor}, store, partition.Options{})
	b.ReportMetric(time.Since(begin).Seconds(), "ready-s")
	b.ReportMetric(float64(atReady())/(1<<20), "ready-MiB")
	b.ReportMetric(float64(heap()-before)/float64(partitions), "B/idle-partition")
	b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")

	begin = time.Now()
	appendToEach(b, d.app, 256)
	b.ReportMetric(time.Since(begin).Seconds(), "appends-s")
	b.ReportMetric(float64(heap()-before)/float64(partitions), "B/used-partition")
	begin = time.Now()
	check(b, d.parts.Close(limit(b)))
	b.ReportMetric(time.Since(begin).Seconds(), "stop-s")
	check(b, store.Close(limit(b)))

	heap() // the next start, of another process, would find no garbage
	begin = time.Now()
	store = openBolt(b, dir, descriptor, bolt.Options{})
	d = deploy(b, partition.Application{Descriptor: descriptor}, store, partition.Options{})
	b.ReportMetric(time.Since(begin).Seconds(), "ready-again-s")
	check(b, d.parts.Close(limit(b)))
	check(b, store.Close(limit(b)))
	b.ReportMetric(float64(peak())/(1<<20), "peak-MiB")
}

// appendToEach writes an event to each partition, by so many callers at a time.
func appendToEach(t testing.TB, app *partition.App, callers int) {
	t.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for ws := next.Add(1) - 1; ws < int64(app.Partitions()); ws = next.Add(1) - 1 {
				if err := appendOne(app, messages.WSID(ws)); err != nil {
					t.Errorf("workspace %d: %v", ws, err)
					return
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func appendOne(app *partition.App, ws messages.WSID) error {
	sequencer, err := app.SequencerOf(ws)
	if err != nil {
		return err
	}
	done, err := sequencer.Append(context.Background(), partition.AppendTo{Workspace: ws, Kind: kindShop},
		partition.Draft{Wanted: []partition.Wanted{{Seq: seqInvoice}}, Body: []byte("body")})
	if err == nil && done.WLogOffset != 1 {
		err = fmt.Errorf("got offset %d, want 1", done.WLogOffset)
	}
	return err
}

// memoryOfSystem is what the process has of the system, without mapped files, in bytes.
func memoryOfSystem() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// samplePeak looks at a figure again and again. It returns what ends that and gives the most
// that was seen.
func samplePeak(figure func() uint64) func() uint64 {
	stop, ended := make(chan struct{}), make(chan uint64)
	go func() {
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for peak := figure(); ; peak = max(peak, figure()) {
			select {
			case <-ticker.C:
			case <-stop:
				ended <- peak
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		return <-ended
	}
}
