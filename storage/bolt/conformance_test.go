package bolt_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, &factory{dirs: make(map[storage.Store]string)})
}

// factory makes stores in directories of their own.
type factory struct {
	mu   sync.Mutex
	dirs map[storage.Store]string
}

func (f *factory) Open(t testing.TB, d messages.Descriptor) storage.Store {
	return f.open(t, t.TempDir(), d, bolt.Options{})
}

func (f *factory) OpenLimited(t testing.TB, d messages.Descriptor, events int) storage.Store {
	return f.open(t, t.TempDir(), d, bolt.Options{TailEvents: events})
}

func (f *factory) Reopen(t testing.TB, s storage.Store) storage.Store {
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f.open(t, f.dirOf(s), s.Descriptor(), bolt.Options{})
}

// Copies are all ways to a store of what another one holds.
func (f *factory) Copies() []storagetest.Copy {
	return []storagetest.Copy{
		{Name: "a rebuild", Projected: true, Do: f.rebuild},
		{Name: "a backup", Do: f.copied(func(t testing.TB, s storage.Store, to string) error {
			return errors.Join(backUp(t, s, to), s.Close(t.Context()))
		})},
		{Name: "a restore", Projected: true, Do: f.copied(func(t testing.TB, s storage.Store, to string) error {
			backup := filepath.Join(t.TempDir(), "backup")
			err := errors.Join(backUp(t, s, backup), s.Close(t.Context()))
			if err == nil {
				_, err = bolt.Restore(t.Context(), backup, to, bolt.CopyOptions{})
			}
			return err
		})},
		{Name: "a compaction", Do: f.copied(func(t testing.TB, s storage.Store, to string) error {
			err := s.Close(t.Context())
			if err == nil {
				_, err = bolt.Compact(t.Context(), filepath.Join(f.dirOf(s), "store"), to, bolt.CopyOptions{})
			}
			return err
		})},
	}
}

func backUp(t testing.TB, s storage.Store, to string) error {
	_, err := s.(*bolt.Store).Backup(t.Context(), to, bolt.CopyOptions{})
	return err
}

// copied opens a copy, which is made of a store that is closed then.
func (f *factory) copied(copyTo func(t testing.TB, s storage.Store, to string) error) func(testing.TB, storage.Store) storage.Store {
	return func(t testing.TB, s storage.Store) storage.Store {
		dir := t.TempDir()
		if err := copyTo(t, s, filepath.Join(dir, "store")); err != nil {
			t.Fatal(err)
		}
		return f.open(t, dir, s.Descriptor(), bolt.Options{})
	}
}

// rebuild deletes state.db.
func (f *factory) rebuild(t testing.TB, s storage.Store) storage.Store {
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(f.dirOf(s), "store", "state.db")); err != nil {
		t.Fatal(err)
	}
	return f.open(t, f.dirOf(s), s.Descriptor(), bolt.Options{})
}

// Crash copies the files as they are: what was acknowledged is in them.
func (f *factory) Crash(t testing.TB, s storage.Store) storage.Store {
	dir := t.TempDir()
	copyStore(t, filepath.Join(f.dirOf(s), "store"), filepath.Join(dir, "store"))
	// The abandoned store is of no use any more; its resources are.
	if err := s.Close(t.Context()); err != nil {
		t.Logf("close the abandoned store: %v", err)
	}
	return f.open(t, dir, s.Descriptor(), bolt.Options{})
}

func (f *factory) open(t testing.TB, dir string, d messages.Descriptor, o bolt.Options) storage.Store {
	// A small map keeps the files small, since bbolt makes them as large as the map up
	// to 16 MiB, and makes it map them again and again.
	o.MmapSize, o.Create = 32<<10, true
	s, err := bolt.Open(t.Context(), filepath.Join(dir, "store"), d, o)
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirs[s] = dir
	return s
}

func (f *factory) dirOf(s storage.Store) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dirs[s]
}

func copyStore(t testing.TB, from, to string) {
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"log.db", "log.wal", "state.db", "subscriptions.db"} {
		data, err := os.ReadFile(filepath.Join(from, name))
		if (name == "log.wal" || name == "subscriptions.db") && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
