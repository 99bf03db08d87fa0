package tests

import (
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// TestManyPartitions: thousands of partitions, of which each writes an event, are ready, stop
// cleanly and are ready again in a few commits, and an idle one takes little memory.
func TestManyPartitions(t *testing.T) {
	const partitions, callers = 4096, 256
	descriptor, dir := shop(partitions), t.TempDir()
	store := openBolt(t, dir, descriptor, bolt.Options{})
	before := heap()
	d := deploy(t, partition.Application{Descriptor: descriptor}, store, partition.Options{})
	// One commit for each epoch would be 4,096.
	atMost(t, "commits until ready", int64(store.Stats().Commits), partitions/8)
	atMost(t, "bytes on the heap for an idle partition", (heap()-before)/partitions, 7<<10)

	appendToEach(t, d.app, callers)
	check(t, d.parts.Close(limit(t)))
	atMost(t, "flushes", int64(store.Stats().Flushes), partitions/8)
	check(t, store.Close(limit(t)))

	store = openBolt(t, dir, descriptor, bolt.Options{})
	d = deploy(t, partition.Application{Descriptor: descriptor}, store, partition.Options{})
	for _, s := range d.app.Status() {
		if s.State != messages.StateNormal || s.Last != 1 || s.Replayed != 0 {
			t.Fatalf("partition %d: got %+v, want one event and none replayed", s.Partition, s)
		}
	}
	d.stop(t)
}

func atMost(t *testing.T, what string, got, want int64) {
	t.Helper()
	t.Logf("%s: %d", what, got)
	if got > want {
		t.Errorf("%s: got %d, want at most %d", what, got, want)
	}
}
