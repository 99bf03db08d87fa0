package files_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	id         = format.StoreID{1}
	descriptor = messages.Descriptor{Application: "test", Partitions: 2, Kinds: []messages.Kind{{ID: 1, Name: "tenant"}}}
	small      = files.Options{MmapSize: 32 << 10}
)

// makeFile makes a file of a store in a directory.
func makeFile(t *testing.T, dir string, r format.Role, id format.StoreID, edit func(*bbolt.Tx) error) {
	t.Helper()
	f, err := files.NewFile(expect.Opened(t, boltfile.OpenDirectory, dir), r, id, descriptor, small)
	expect.NoError(t, err)
	if edit != nil {
		err = f.Update(edit)
	}
	expect.NoError(t, f.CloseCopy(err))
}

// heldLog is a directory with a log of two events, held until the end of the test.
func heldLog(t *testing.T) (dir string, s *files.Set) {
	t.Helper()
	dir = t.TempDir()
	makeFile(t, dir, format.RoleLog, id, func(tx *bbolt.Tx) error { return logdb.Put(tx, 1, [][]byte{{1}, {2}}) })
	return dir, held(t, dir)
}

// held opens the log of a directory until the end of the test, and reads it.
func held(t *testing.T, dir string) *files.Set {
	t.Helper()
	s := expect.Opened(t, func(string) (*files.Set, error) { return files.HoldLog(dir, small) }, "")
	expect.NoError(t, s.ReadLog())
	return s
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	expect.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// A log tells whose it is, and where it ends. Where there is none, nothing is made.
func TestHoldLog(t *testing.T) {
	_, s := heldLog(t)
	expect.Equal(t, id, s.ID)
	expect.Equal(t, descriptor.Application, s.Descriptor.Application)
	expect.Equal(t, 2, s.End)
	empty := t.TempDir()
	for _, dir := range []string{empty, filepath.Join(empty, "none")} {
		_, err := files.HoldLog(dir, small)
		expect.ErrorIs(t, err, storage.ErrNotFound, dir)
	}
	expect.Equal(t, nil, names(t, empty))
}

// A file is there also if nothing can be read of it; what is no file is an error.
func TestRolesThere(t *testing.T) {
	dir, s := heldLog(t)
	there := func(want ...format.Role) {
		t.Helper()
		got, err := s.RolesThere()
		expect.NoError(t, err)
		expect.Equal(t, want, got)
	}
	there(format.RoleLog)
	for _, name := range []string{format.StateFileName, format.SubscriptionsFileName} {
		expect.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	there(format.RoleLog, format.RoleSubscriptions) // an empty state.db is as good as none
	makeFile(t, dir, format.RoleState, id, nil)
	there(format.RoleLog, format.RoleState, format.RoleSubscriptions)
	state := filepath.Join(dir, format.StateFileName)
	expect.NoError(t, os.Remove(state))
	expect.NoError(t, os.Symlink(filepath.Join(dir, format.LogFileName), state))
	_, err := s.RolesThere()
	expect.ErrorIs(t, err, storage.ErrForeign)
}

// The subscriptions beside a log are of the same store, or not there.
func TestOpenSubscriptions(t *testing.T) {
	_, none := heldLog(t)
	expect.NoError(t, none.OpenSubscriptions())
	expect.Equal(t, true, none.Subscriptions.Load() == nil)
	dir, s := heldLog(t)
	makeFile(t, dir, format.RoleSubscriptions, id, nil)
	expect.NoError(t, s.OpenSubscriptions())
	expect.NoError(t, subsdb.View(s.Subscriptions.Load(), func(tx subsdb.Tx) error { return tx.CheckCount(0) }))
	dir, foreign := heldLog(t)
	makeFile(t, dir, format.RoleSubscriptions, format.StoreID{2}, nil)
	expect.ErrorIs(t, foreign.OpenSubscriptions(), storage.ErrForeign)
}

// subscriptions.db is made whole, or taken as it was left; nothing is left beside it, and nothing is overwritten.
func TestMakeSubscriptions(t *testing.T) {
	for name, c := range map[string]struct {
		before func(t *testing.T, dir string)
		want   error
	}{
		"nothing is there": {func(*testing.T, string) {}, nil},
		"an empty file": {func(t *testing.T, dir string) {
			expect.NoError(t, os.WriteFile(filepath.Join(dir, format.SubscriptionsFileName), nil, 0o600))
		}, nil},
		"one that was left":    {func(t *testing.T, dir string) { makeFile(t, dir, format.RoleSubscriptions, id, nil) }, nil},
		"one of another store": {func(t *testing.T, dir string) { makeFile(t, dir, format.RoleSubscriptions, format.StoreID{2}, nil) }, storage.ErrForeign},
		"a directory": {func(t *testing.T, dir string) {
			expect.NoError(t, os.Mkdir(filepath.Join(dir, format.SubscriptionsFileName), 0o700))
		}, storage.ErrForeign},
		"another log": {func(t *testing.T, dir string) {
			expect.NoError(t, os.Remove(filepath.Join(dir, format.LogFileName)))
			makeFile(t, dir, format.RoleLog, id, nil)
		}, storage.ErrDisplaced},
	} {
		t.Run(name, func(t *testing.T) {
			dir, s := heldLog(t)
			c.before(t, dir)
			before := names(t, dir)
			f, err := s.MakeSubscriptions()
			expect.ErrorIs(t, err, c.want)
			if c.want != nil {
				expect.Equal(t, true, f == nil)
				expect.Equal(t, before, names(t, dir))
				return
			}
			expect.Equal(t, []string{format.LogFileName, format.SubscriptionsFileName}, names(t, dir))
			h, err := f.Header(format.RoleSubscriptions)
			expect.NoError(t, err)
			expect.Equal(t, id, h.ID)
			expect.NoError(t, subsdb.View(f, func(tx subsdb.Tx) error { return tx.CheckCount(0) }))
			expect.NoError(t, f.Close())
		})
	}
}
