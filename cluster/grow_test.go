package cluster

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
)

// alone runs the application of a store on one node, and appends events from one number on.
func alone(t *testing.T, dir string, first, last int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	store, err := bolt.Open(ctx, dir, descriptor(), bolt.Options{Create: true, MmapSize: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	system := quiet.NewSystem()
	parts := partition.NewAppParts(system, partition.Options{})
	defer closeAll(t, parts, store, system)
	app, err := parts.Deploy(ctx, partition.Application{Descriptor: descriptor()}, store)
	if err != nil {
		t.Fatal(err)
	}
	s, err := app.SequencerOf(1)
	if err != nil {
		t.Fatal(err)
	}
	for i := first; i <= last; i++ {
		done, err := s.Append(ctx, to(1, i), one(i))
		if err != nil || done.Numbers[0].Number != messages.Number(i) {
			t.Fatalf("append %d: got %+v, %v", i, done, err)
		}
	}
}

func closeAll(t *testing.T, parts *partition.AppParts, store *bolt.Store, system *actor.ActorSystem) {
	t.Helper()
	if err := parts.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := store.Close(context.Background()); err != nil {
		t.Error(err)
	}
	system.Shutdown()
}

// copyStore makes a store of another one that nobody has open, as an operator does.
func copyStore(t *testing.T, from, to string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	s, err := bolt.OpenExisting(ctx, from, bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "backup")
	if _, err := s.Backup(ctx, backup, bolt.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := bolt.Restore(ctx, backup, to, bolt.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestFromOneNodeToThreeAndBack goes on with the events of one node on three, and with those on one.
func TestFromOneNodeToThreeAndBack(t *testing.T) {
	t.Parallel()
	single, again := filepath.Join(t.TempDir(), "single"), filepath.Join(t.TempDir(), "again")
	alone(t, single, 1, 20)
	backup := filepath.Join(t.TempDir(), "copy")
	copyStore(t, single, backup)
	t.Run("three", func(t *testing.T) {
		r := newRig(t, func(_ replog.NodeID, o *Options) {
			if err := os.MkdirAll(o.Dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if _, err := bolt.Restore(t.Context(), backup, StoreDir(o.Dir), bolt.CopyOptions{}); err != nil {
				t.Fatal(err)
			}
		})
		owner := r.owner()
		for i := 21; i <= 40; i++ {
			if done := r.append(r.node(names[i%3]), 1, i); done.Numbers[0].Number != messages.Number(i) {
				t.Fatalf("append %d: got %+v", i, done)
			}
		}
		if again := r.append(owner, 1, 7); !again.Repeated {
			t.Errorf("an append of before is appended again: %+v", again)
		}
		owner = r.owner()
		for _, n := range r.others(owner) {
			r.stop(n.o.Node)
		}
		r.stop(owner.o.Node)
		copyStore(t, StoreDir(owner.o.Dir), again)
	})
	alone(t, again, 41, 60)
}
