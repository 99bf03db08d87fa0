package bolt

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// aged lets all files of a directory be from long ago, and returns which of them have been written
// since then.
func aged(t *testing.T, dir string) (written func() map[string]bool) {
	t.Helper()
	long := time.Unix(1_000_000_000, 0)
	for name := range filesOf(t, dir) {
		noError(t, os.Chtimes(filepath.Join(dir, name), long, long))
	}
	return func() map[string]bool {
		all := make(map[string]bool)
		for name := range filesOf(t, dir) {
			info, err := os.Stat(filepath.Join(dir, name))
			noError(t, err)
			all[name] = !info.ModTime().Equal(long)
		}
		return all
	}
}

// leftLarge is leftBehind with more in log.wal than log.db has room for before it grows.
func leftLarge(t *testing.T) (dir string, d messages.Descriptor, want []messages.Event) {
	t.Helper()
	dir = t.TempDir()
	s, w, before, _ := openHooked(t, dir, 1)
	release := before.hold(t)
	e := w.event(2)
	e.Body = make([]byte, 100_000)
	noError(t, w.try(e))
	crash := crashCopy(t, dir)
	release()
	want = collectEvents(t, s.Log(t.Context(), 1))
	closeStore(t, s)
	return crash, s.Descriptor(), want
}

// What a killed process has left is written again as it is before a projection of it can be durable, also by
// who opens a store whose disk is full. Who only reads writes nothing.
func TestOpenVouchesForWhatIsLeft(t *testing.T) {
	left, d, want := leftLarge(t)
	closed := crashCopy(t, left)
	closeStore(t, open(t, closed, d, Options{}))
	full := Options{MmapSize: 32 << 10, MaxSize: int64(len(filesOf(t, left)[format.LogFileName]))}
	for what, c := range map[string]struct {
		from    string
		options Options
		written map[string]bool
	}{
		"no room":    {left, full, map[string]bool{format.LogFileName: true, format.WALFileName: true, format.StateFileName: false}},
		"only reads": {left, Options{ReadOnly: true}, map[string]bool{format.LogFileName: false, format.WALFileName: false, format.StateFileName: false}},
		"may write":  {closed, Options{}, map[string]bool{format.LogFileName: true, format.StateFileName: false}},
	} {
		dir := crashCopy(t, c.from)
		before, written := filesOf(t, dir), aged(t, dir)
		s := open(t, dir, d, c.options)
		equal(t, want, collectEvents(t, s.Log(t.Context(), 1)), what)
		equal(t, c.written, written(), what)
		after := filesOf(t, dir)
		if what == "no room" { // what stands in both files is written to log.db
			before[format.LogFileName] = after[format.LogFileName]
		}
		if !maps.Equal(before, after) {
			t.Errorf("%s: a file was changed", what)
		}
		closeStore(t, s)
	}
}

// Of a log.wal with holes, as some copies of it have them, no hole is filled: there may be no room for it.
func TestHolesOfWALStay(t *testing.T) {
	content := make([]byte, 9*wal.BlockLen+100)
	want := bytes.Repeat([]byte{0xff}, len(content))
	for _, block := range []int{0, 3, 4, 9} {
		content[block*wal.BlockLen+50] = 1
		from, to := block*wal.BlockLen, min((block+1)*wal.BlockLen, len(content))
		copy(want[from:to], content[from:to])
	}
	path := filepath.Join(t.TempDir(), "wal")
	noError(t, os.WriteFile(path, bytes.Repeat([]byte{0xff}, len(content)), 0o600))
	handle, err := os.OpenFile(path, os.O_RDWR, 0)
	noError(t, err)
	noError(t, wal.WriteBlocks(handle, content))
	noError(t, handle.Close())
	got, err := os.ReadFile(path)
	noError(t, err)
	if !bytes.Equal(got, want) {
		t.Error("another block was written than those which hold something")
	}
	handle, err = os.Open(path)
	noError(t, err)
	if err := wal.WriteBlocks(handle, content); err == nil {
		t.Error("nothing can be written, and nobody was told")
	}
	noError(t, handle.Close())
}

// What could not be written for want of space is synced as it is; after another failure nothing is.
func TestWhatIsSynced(t *testing.T) {
	for _, c := range []struct {
		written, sync, want error
		synced              bool
	}{
		{nil, nil, nil, true},
		{nil, syscall.EIO, syscall.EIO, true},
		{syscall.ENOSPC, nil, nil, true},
		{syscall.ENOSPC, syscall.EIO, syscall.EIO, true},
		{syscall.EIO, nil, syscall.EIO, false},
	} {
		synced := false
		err := wal.SyncWritten(c.written, func() error {
			synced = true
			return c.sync
		})
		if !errors.Is(err, c.want) || synced != c.synced {
			t.Errorf("%v: got %v, synced %v, want %v, %v", c.written, err, synced, c.want, c.synced)
		}
	}
}
