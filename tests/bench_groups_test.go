package tests

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// BenchmarkGroup puts Ask of a group beside Execute of one command processor, storage out of the way, in turn: by one
// caller, and by as many as the group has members, of which the one command processor serves all.
func BenchmarkGroup(b *testing.B) {
	b.Run("callers=1/in-turn", func(b *testing.B) { benchmarkGroup(b, 8, 1) })
	b.Run("callers=8/in-turn", func(b *testing.B) { benchmarkGroup(b, 8, 8) })
}

func benchmarkGroup(b *testing.B, members, callers int) {
	const slice = 8_000
	app := nowhereApp(b)
	one := must(app.SpawnAppendProcessor(nothing))(b)
	group := must(app.SpawnGroup(partition.GroupConfig{Name: "bench", Members: members, Drafter: nothing}))(b)
	var alone, grouped time.Duration
	for b.Loop() {
		alone += commandsBy(b, callers, slice, one.Execute)
		grouped += commandsBy(b, callers, slice, group.Ask)
	}
	b.ReportMetric(float64(grouped)/float64(alone), "times")
	b.ReportMetric(float64(alone)/float64(b.N*slice), "one-ns")
	b.ReportMetric(float64(grouped)/float64(b.N*slice), "group-ns")
	b.ReportMetric(0, "ns/op") // of both
}

func nothing(context.Context, *partition.DraftContext) error { return nil }

// nowhereApp returns an application of 8 partitions whose storage is out of the way.
func nowhereApp(b *testing.B) *partition.App {
	b.Helper()
	descriptor := shop(8)
	parts := partition.NewAppParts(system, partition.Options{})
	app := must(parts.Deploy(limit(b), partition.Application{WorkspaceZero: true, Descriptor: descriptor}, &nowhere{descriptor: descriptor.Normalized()}))(b)
	b.Cleanup(func() { check(b, parts.Close(limit(b))) })
	check(b, app.Ready(limit(b)))
	return app
}

// commandsBy sends so many commands, each caller his share, and returns how long it took.
func commandsBy(b *testing.B, callers, commands int,
	send func(context.Context, messages.Command) (*messages.CommandDone, error),
) time.Duration {
	b.Helper()
	begin := time.Now()
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := range commands / callers {
				ws := messages.WSID(caller + callers*(i%100))
				if _, err := send(context.Background(), messages.Command{Workspace: ws, Kind: kindShop}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(begin)
}
