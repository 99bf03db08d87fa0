package tests

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// BenchmarkMemory measures the heap after transactions on many workspaces with 3
// sequences each; the store keeps nothing, so that what is measured is ours. Bar:
// 1,000,000 workspaces at most 64 MiB more than 1,000, cache 100,000.
func BenchmarkMemory(b *testing.B) {
	for _, workspaces := range []uint64{1_000, 1_000_000} {
		for _, distribution := range []string{"uniform", "zipf"} {
			b.Run(fmt.Sprintf("workspaces=%d/%s", workspaces, distribution), func(b *testing.B) {
				for b.Loop() {
					benchmarkMemory(b, workspaces, distribution == "zipf")
				}
			})
		}
	}
}

// loading is nowhere, with numbers to load.
type loading struct{ nowhere }

func (*loading) Numbers(_ context.Context, ws messages.WSID, _ ...messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
	return storage.WorkspaceNumbers{Workspace: ws, Kind: kindShop, Numbers: []messages.SequenceNumber{
		{Seq: messages.SeqWLogOffset, Number: 1 << 20}, {Seq: seqInvoice, Number: 1 << 20},
		{Seq: seqReceipt, Number: 1 << 20}, {Seq: seqDelivery, Number: 1 << 20},
	}}, nil
}

func (*loading) PLog(context.Context, messages.PartitionID, messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return func(func(messages.Event, error) bool) {}
}

func benchmarkMemory(b *testing.B, workspaces uint64, zipf bool) {
	const partitions = 8
	descriptor := shop(partitions)
	store := &loading{nowhere{descriptor: descriptor.Normalized()}}
	parts := partition.NewAppParts(system, partition.Options{})
	app := must(parts.Deploy(limit(b), partition.Application{WorkspaceZero: true, Descriptor: descriptor}, store))(b)
	check(b, app.Ready(limit(b)))
	before := heap()
	random := rand.New(rand.NewPCG(1, 2))
	skewed := rand.NewZipf(random, 1.01, 1, workspaces-1)
	for i := range max(workspaces, 200_000) {
		ws := i % workspaces
		if zipf {
			ws = skewed.Uint64()
		}
		reserve(b, app, messages.WSID(ws))
	}
	b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
	check(b, parts.Close(limit(b)))
}

// reserve runs a transaction of three numbers whose event is written nowhere.
func reserve(b *testing.B, app *partition.App, ws messages.WSID) {
	ctx := context.Background()
	sequencer := must(app.SequencerOf(ws))(b)
	tx := must(sequencer.Start(ctx, kindShop, ws))(b)
	for _, seq := range []messages.SeqID{seqInvoice, seqReceipt, seqDelivery} {
		must(tx.Next(ctx, seq))(b)
	}
	check(b, tx.Flush(ctx))
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
