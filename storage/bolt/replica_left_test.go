package bolt

import (
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/memory"
)

// A store that was killed alone goes on as a replica. That makes no log.wal, and forgets the one that is left: it is killed
// again, and opens without it.
func TestReplicaForgetsLeftWAL(t *testing.T) {
	dir, _, want := leftBehind(t)
	log := func() replog.Log { return memory.NewCluster(7, "a").Log("a") }
	o := smallMap.WithDefaults()
	o.Log = log()
	op := openedWith(t, dir, o)
	expect.NoError(t, op.recover(t.Context()))
	disk, gone := diskOf(op.Store), make(chan struct{})
	tell := sync.OnceFunc(func() { close(gone) })
	disk.Names.Set(func() error {
		tell()
		return nil
	})
	op.start()
	defer closeStore(t, op.Store)
	expect.NoError(t, op.replica.start())
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Fatal("log.wal stays")
	}
	noWAL(t, dir)
	crash := quietCopy(t, op.Store, dir)
	o.Log = log()
	again, err := OpenExisting(t.Context(), crash, o)
	expect.NoError(t, err)
	defer closeStore(t, again)
	expect.Equal(t, want, collectEvents(t, again.Log(replog.Local(t.Context()), 1)))
}

// TestReplicaLacksLittle: log.db of a node that does not lead may lack less than that of the one that does.
func TestReplicaLacksLittle(t *testing.T) {
	r := openReplicas(t, 2, testDescriptor(1, messages.TrustNone), Options{Memory: 64 << 20})
	for i, want := range []int64{8 << 20, 2 << 20} {
		if got := r.nodes[i].store.replica.pending(); got != want {
			t.Errorf("node %s: got %d, want %d", r.nodes[i].id, got, want)
		}
	}
}
