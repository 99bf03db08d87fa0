package tests

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/partita-go/partita/dumps"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// dumpedAppends is how many events one slice of the benchmark appends.
const dumpedAppends = 200_000

// BenchmarkFullLoadDumped appends at full load without dumps, with dumps at 10,000 lines/s for each group, and at the
// default limit, in turn on stores of their own. Bars: what is appended in a second is at least 0.95 and 0.8 of that
// without. The file is on the store's disk.
func BenchmarkFullLoadDumped(b *testing.B) {
	var off, slow, full time.Duration
	for b.Loop() {
		off += appendDumped(b, nil)
		slow += appendDumped(b, &dumps.Group{Rate: 10_000})
		full += appendDumped(b, &dumps.Group{})
	}
	b.ReportMetric(float64(b.N)*dumpedAppends/off.Seconds(), "appends/s")
	b.ReportMetric(off.Seconds()/slow.Seconds(), "at-10k")
	b.ReportMetric(off.Seconds()/full.Seconds(), "at-default")
	b.ReportMetric(0, "ns/op")
}

// appendDumped returns how long a slice takes.
func appendDumped(b *testing.B, g *dumps.Group) time.Duration {
	b.Helper()
	ctx, dir := context.Background(), b.TempDir()
	options := partition.Options{}
	if g != nil {
		w, err := dumps.Open(filepath.Join(dir, "dump"), dumps.Options{Groups: map[string]dumps.Group{dumps.AllGroups: *g}})
		check(b, err)
		defer func() { check(b, w.Close(ctx)) }()
		options.Observer = w
	}
	app := partition.Application{WorkspaceZero: true, Descriptor: shop(fullLoadPartitions)}
	store := must(bolt.Open(ctx, filepath.Join(dir, "store"), app.Descriptor, bolt.Options{Create: true}))(b)
	parts := partition.NewAppParts(system, options)
	deployed := must(parts.Deploy(ctx, app, store))(b)
	check(b, deployed.Ready(ctx))
	begin := time.Now()
	load := startFullLoad(deployed, dumpedAppends)
	load.callers.Wait()
	took := time.Since(begin)
	check(b, load.end())
	check(b, parts.Close(ctx))
	check(b, store.Close(ctx))
	return took
}
