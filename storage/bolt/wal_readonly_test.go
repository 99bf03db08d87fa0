package bolt

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// Whoever only reads what a crash has left sees what is in log.wal, and changes nothing.
func TestWALIsReadOnly(t *testing.T) {
	dir, _, want := leftBehind(t)
	files := filesOf(t, dir)
	unchanged := func(t *testing.T) {
		t.Helper()
		if got := filesOf(t, dir); !maps.Equal(got, files) {
			t.Fatal("a file was changed")
		}
	}
	readOnly := smallMap
	readOnly.ReadOnly = true
	t.Run("store", func(t *testing.T) {
		s, err := OpenExisting(t.Context(), dir, readOnly)
		expect.NoError(t, err)
		expect.Equal(t, want, collectEvents(t, s.Log(t.Context(), 1)))
		expect.Equal(t, want[2:], collectEvents(t, s.PLog(t.Context(), 0, 3)))
		expect.Equal(t, 2, len(collectEvents(t, s.WLog(t.Context(), 2, 1))))
		expect.Equal(t, 3, len(collectRows(t, s, 1, storage.RecordRange{Seq: testSeq})))
		reg, err := s.Register(t.Context(), 0)
		expect.NoError(t, err)
		expect.Equal(t, 5, reg.Last)
		in, err := s.Inspect(t.Context())
		expect.NoError(t, err)
		expect.Equal(t, 5, in.Events)
		closeStore(t, s)
		unchanged(t)
	})
	t.Run("log", func(t *testing.T) {
		l, err := OpenLog(t.Context(), dir)
		expect.NoError(t, err)
		expect.Equal(t, want, collectEvents(t, l.Log(t.Context(), 1)))
		expect.Equal(t, 2, len(collectEvents(t, l.WLog(t.Context(), 2, 1))))
		in, err := l.Inspect(t.Context())
		expect.NoError(t, err)
		expect.Equal(t, 5, in.Events)
		expect.Equal(t, 5, in.Partitions[0].Last)
		expect.NoError(t, l.Close())
		unchanged(t)
	})
	t.Run("verify", func(t *testing.T) {
		r, err := Verify(t.Context(), dir, verify.Options{})
		expect.NoError(t, err)
		expect.NoError(t, r.Err())
		expect.Equal(t, 5, r.Events)
		unchanged(t)
	})
	t.Run("compact", func(t *testing.T) {
		to := filepath.Join(t.TempDir(), "to")
		c, err := Compact(t.Context(), dir, to, CopyOptions{})
		expect.NoError(t, err)
		expect.Equal(t, 5, c.Events)
		unchanged(t)
		noWAL(t, to)
		s, err := OpenExisting(t.Context(), to, readOnly)
		expect.NoError(t, err)
		expect.Equal(t, want, collectEvents(t, s.Log(t.Context(), 1)))
		closeStore(t, s)
	})
	t.Run("restore", func(t *testing.T) {
		to := filepath.Join(t.TempDir(), "to")
		c, err := Restore(t.Context(), dir, to, CopyOptions{})
		expect.NoError(t, err)
		expect.Equal(t, 5, c.Events)
		unchanged(t)
		noWAL(t, to)
		s, err := OpenExisting(t.Context(), to, readOnly)
		expect.NoError(t, err)
		expect.Equal(t, want, collectEvents(t, s.Log(t.Context(), 1)))
		closeStore(t, s)
	})
}

func noWAL(t *testing.T, dir string) {
	t.Helper()
	_, err := os.Stat(walPath(dir))
	expect.ErrorIs(t, err, os.ErrNotExist)
}

// Without state.db the log alone has what is in log.wal, and the next open rebuilds all.
func TestWALWithoutState(t *testing.T) {
	dir, d, want := leftBehind(t)
	expect.NoError(t, os.Remove(filepath.Join(dir, format.StateFileName)))
	r, err := Verify(t.Context(), dir, verify.Options{})
	expect.NoError(t, err)
	expect.Equal(t, 1, r.FaultCount)
	expect.Equal(t, verify.CheckMissing, r.Faults[0].Check)
	opensWith(t, dir, d, want)
}

// A backup of a store in use has what log.db has not, and needs no log.wal.
func TestWALBackup(t *testing.T) {
	s, w, commits := openHooked(t, t.TempDir(), 1)
	commits.Before.HoldAll(t)
	w.append(2, 1, 2)
	to := filepath.Join(t.TempDir(), "to")
	c, err := s.Backup(t.Context(), to, CopyOptions{})
	expect.NoError(t, err)
	expect.Equal(t, 4, c.Events)
	noWAL(t, to)
	opensWith(t, to, s.Descriptor(), collectEvents(t, s.Log(t.Context(), 1)))
}
