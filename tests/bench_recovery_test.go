package tests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// events is how many events the recovery benchmarks work on.
func events(fallback int) int {
	if n, err := strconv.Atoi(os.Getenv("EVENTS")); err == nil && n > 0 {
		return n
	}
	return fallback
}

// unflushed are settings under which nothing of a log is flushed.
var unflushed = partition.Settings{
	FlushThreshold: 1 << 30, BusyLimit: 1 << 30, BusyEvents: 1 << 30,
	FlushInterval: time.Hour, CatchUpCheckpoint: time.Hour,
}

var wideTail = bolt.Options{TailEvents: 1 << 30, Memory: 1 << 42}

// BenchmarkRecovery puts the recovery of a long tail beside a plain scan of the
// same log. Bar: tail at most 3 times scan.
func BenchmarkRecovery(b *testing.B) {
	n := events(1_000_000)
	dir := b.TempDir()
	descriptor := shop(8)
	store := openBolt(b, dir, descriptor, wideTail)
	newHistory(b, store, 10_000).write(b, n)
	check(b, store.Close(limit(b)))
	b.Run(fmt.Sprintf("events=%d/scan", n), func(b *testing.B) { benchmarkScan(b, dir, descriptor) })
	b.Run(fmt.Sprintf("events=%d/tail", n), func(b *testing.B) {
		for b.Loop() {
			replayed := recoverOnce(b, dir, partition.Application{WorkspaceZero: true, Descriptor: descriptor, Settings: unflushed}, wideTail)
			b.ReportMetric(float64(replayed), "replayed")
		}
	})
}

// benchmarkScan decodes each event and keeps the maxima in a map.
func benchmarkScan(b *testing.B, dir string, descriptor messages.Descriptor) {
	store := openBolt(b, dir, descriptor, wideTail)
	type key struct {
		ws  messages.WSID
		seq messages.SeqID
	}
	for b.Loop() {
		last := make(map[key]messages.Number)
		for e, err := range store.Log(context.Background(), 1) {
			check(b, err)
			last[key{e.Workspace, messages.SeqWLogOffset}] = max(last[key{e.Workspace, messages.SeqWLogOffset}], messages.Number(e.WLogOffset))
			for _, n := range e.Numbers {
				last[key{e.Workspace, n.Seq}] = max(last[key{e.Workspace, n.Seq}], n.Number)
			}
		}
	}
	b.StopTimer()
	check(b, store.Close(limit(b)))
}

// recoverOnce measures from opening the store to the first Start that is granted,
// and returns how many events were replayed. Ending is not measured, and not
// clean, so that the tail stays.
func recoverOnce(b *testing.B, dir string, a partition.Application, o bolt.Options) uint64 {
	ctx := limit(b)
	store := must(bolt.Open(ctx, dir, a.Descriptor, o))(b)
	parts := partition.NewAppParts(system, partition.Options{})
	app := must(parts.Deploy(ctx, a, store))(b)
	check(b, app.Ready(ctx))
	tx := must(must(app.SequencerOf(1))(b).Start(ctx, kindShop, 1))(b)
	b.StopTimer()
	check(b, tx.Cancel(ctx))
	replayed := uint64(0)
	for _, s := range app.Status() {
		replayed += s.Replayed
	}
	closeDirty(b, parts, store)
	b.StartTimer()
	return replayed
}

// closeDirty ends everything as a crash would: the store is closed first, so that
// the last flush is refused.
func closeDirty(t testing.TB, parts *partition.AppParts, store storage.Store) {
	t.Helper()
	check(t, store.Close(limit(t)))
	_ = parts.Close(limit(t))
}

// BenchmarkFirstStart measures from opening a store after a clean stop to the first
// Start granted, at two lengths of the log. Bar: at most 100 ms, the same at both.
func BenchmarkFirstStart(b *testing.B) {
	for _, n := range []int{100_000, events(5_000_000)} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			app := partition.Application{WorkspaceZero: true, Descriptor: shop(8)}
			dir := flushedStore(b, app, n)
			b.ResetTimer()
			for range b.N {
				if replayed := firstStart(b, dir, app); replayed != 0 {
					b.Fatalf("got %d events replayed after a clean stop, want 0", replayed)
				}
			}
		})
	}
}

// BenchmarkFirstStartAfterKill is the same after a process under load was killed,
// with the default settings.
func BenchmarkFirstStartAfterKill(b *testing.B) {
	for _, n := range []int{100_000, events(5_000_000)} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			app := partition.Application{WorkspaceZero: true, Descriptor: shop(8)}
			dir := flushedStore(b, app, n)
			replayed := uint64(0)
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				loadAndKill(b, dir)
				b.StartTimer()
				replayed += firstStart(b, dir, app)
			}
			b.ReportMetric(float64(replayed)/float64(b.N), "replayed/op")
		})
	}
}

// firstStart measures one start, and stops cleanly without measuring that.
func firstStart(b *testing.B, dir string, app partition.Application) (replayed uint64) {
	ctx := limit(b)
	store := must(bolt.Open(ctx, dir, app.Descriptor, bolt.Options{Create: true}))(b)
	parts := partition.NewAppParts(system, partition.Options{})
	deployed := must(parts.Deploy(ctx, app, store))(b)
	tx := must(startWhenReady(ctx, deployed))(b)
	b.StopTimer()
	for _, s := range deployed.Status() {
		replayed += s.Replayed
	}
	check(b, tx.Cancel(ctx))
	check(b, parts.Close(ctx))
	check(b, store.Close(ctx))
	b.StartTimer()
	return replayed
}

func startWhenReady(ctx context.Context, app *partition.App) (*partition.Transaction, error) {
	if err := app.Ready(ctx); err != nil {
		return nil, err
	}
	sequencer, err := app.SequencerOf(1)
	if err != nil {
		return nil, err
	}
	return sequencer.Start(ctx, kindShop, 1)
}

// BenchmarkRebuild deletes state.db and opens the store. Bar: at least 50,000
// events/s.
func BenchmarkRebuild(b *testing.B) {
	n := events(1_000_000)
	app := partition.Application{WorkspaceZero: true, Descriptor: shop(8)}
	dir := flushedStore(b, app, n)
	b.ResetTimer()
	for range b.N {
		check(b, os.Remove(filepath.Join(dir, "state.db")))
		store := openBolt(b, dir, app.Descriptor, bolt.Options{})
		b.StopTimer()
		check(b, store.Close(limit(b)))
		b.StartTimer()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
