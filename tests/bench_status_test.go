package tests

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/partition"
)

// statusWatchers is how many watch the statuses in the benchmark.
const statusWatchers = 1000

// BenchmarkStatuses puts round trips beside the same with 1,000 watchers of statuses, in turn. Bar: at most 1.03 times.
func BenchmarkStatuses(b *testing.B) {
	b.Run("append/in-turn", func(b *testing.B) { withWatchers(b, appendsTo) })
	b.Run("transaction/in-turn", func(b *testing.B) { withWatchers(b, transactionsOf) })
}

// withWatchers measures what watchers cost the actors.
func withWatchers(b *testing.B, of func(*actors.Sequencer) func(int) error) {
	const slice = 20_000
	without, with := of(watched(b, partition.Options{})), of(watchedStatuses(b))
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

// watchedStatuses is watched, with many who watch the statuses instead of the messages.
func watchedStatuses(b *testing.B) *actors.Sequencer {
	descriptor := shop(1)
	parts := partition.NewAppParts(system, partition.Options{})
	app := must(parts.Deploy(limit(b), partition.Application{WorkspaceZero: true, Descriptor: descriptor}, &nowhere{descriptor: descriptor.Normalized()}))(b)
	check(b, app.Ready(limit(b)))
	var watching, ended sync.WaitGroup
	watching.Add(statusWatchers)
	for range statusWatchers {
		ended.Go(func() {
			first := sync.OnceFunc(watching.Done)
			for _, err := range app.Watch(context.Background()) {
				if err != nil {
					b.Error(err)
				}
				first()
			}
		})
	}
	watching.Wait()
	b.Cleanup(func() {
		check(b, parts.Close(limit(b)))
		ended.Wait()
	})
	return must(app.Sequencer(0))(b)
}
