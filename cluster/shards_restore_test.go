package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
)

// TestShardsOfBackups begins a cluster anew of backups of all shards. Those of some, or of others, are refused.
func TestShardsOfBackups(t *testing.T) {
	t.Parallel()
	backups := t.TempDir()
	t.Run("before", func(t *testing.T) {
		r := newRig(t, sharded)
		r.spread()
		for ws := messages.WSID(1); ws <= 8; ws++ {
			r.append(r.node("n1"), ws, int(ws))
			if err := r.node("n2").Reader().AwaitWLog(r.ctx, ws, 1); err != nil {
				t.Fatal(err)
			}
		}
		r.stop("n2")
		for i := range shards {
			copyStore(t, ShardDir(filepath.Join(r.dir, "n2"), i), ShardDir(backups, i))
		}
	})
	restore := func(dir string, from ...int) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for to, i := range from {
			if _, err := bolt.Restore(t.Context(), ShardDir(backups, i), ShardDir(dir, to), bolt.CopyOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := newRig(t, func(id replog.NodeID, o *Options) {
		sharded(id, o)
		restore(o.Dir, 0, 1, 2)
	})
	r.spread()
	for ws := messages.WSID(1); ws <= 8; ws++ {
		if done := r.append(r.node("n3"), ws, 10+int(ws)); done.Numbers[0].Number != 2 {
			t.Errorf("workspace %d: got number %d, want 2", ws, done.Numbers[0].Number)
		}
	}
	r.change = sharded
	few, mixed := filepath.Join(t.TempDir(), "few"), filepath.Join(t.TempDir(), "mixed")
	restore(few, 0, 1)
	if _, err := r.open("n1", func(o *Options) { o.Dir = few }); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), `"2"`) {
		t.Errorf("two stores of three: got %v, want ErrOptions", err)
	}
	restore(mixed, 0, 2, 1)
	_, err := r.open("n1", func(o *Options) { o.Dir = mixed })
	if !errors.Is(err, storage.ErrForeign) || !strings.Contains(err.Error(), ShardDir(mixed, 1)) {
		t.Errorf("stores in wrong places: got %v, want ErrForeign that says where", err)
	}
}

// TestStoreOfAShardIsMissing of those that were restored: its numbers would begin anew.
func TestStoreOfAShardIsMissing(t *testing.T) {
	t.Parallel()
	for _, there := range [][]int{{1, 2}, {0, 2}, {2}, {MaxShards - 1}} {
		dir := t.TempDir()
		missing := ShardDir(dir, 0)
		for _, i := range there {
			if i == 0 {
				missing = ShardDir(dir, 1)
			}
			if err := os.MkdirAll(ShardDir(dir, i), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, count := range []int{1, shards} {
			n, err := Start(t.Context(), Options{
				Node: "n1", Peers: map[replog.NodeID]string{"n1": "127.0.0.1:0", "n2": "127.0.0.1:1"}, Dir: dir, Create: true, Shards: count,
				Application: partition.Application{Descriptor: descriptor()},
			})
			if err == nil {
				err = n.Close(t.Context())
			}
			if !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), missing) {
				t.Errorf("%d shards, stores %v: got %v, want ErrOptions that names %s", count, there, err, missing)
			}
		}
	}
}
