package bolt

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// aged lets all files of a directory be from long ago, and returns which of them have been written
// since then.
func aged(t *testing.T, dir string) (written func() map[string]bool) {
	t.Helper()
	long := time.Unix(1_000_000_000, 0)
	for name := range filesOf(t, dir) {
		expect.NoError(t, os.Chtimes(filepath.Join(dir, name), long, long))
	}
	return func() map[string]bool {
		all := make(map[string]bool)
		for name := range filesOf(t, dir) {
			info, err := os.Stat(filepath.Join(dir, name))
			expect.NoError(t, err)
			all[name] = !info.ModTime().Equal(long)
		}
		return all
	}
}

// leftLarge is leftBehind with more in log.wal than log.db has room for before it grows.
func leftLarge(t *testing.T) (dir string, d messages.Descriptor, want []messages.Event) {
	t.Helper()
	dir = t.TempDir()
	s, w, commits := openHooked(t, dir, 1)
	release := commits.Before.HoldAll(t)
	e := w.event(2)
	e.Body = make([]byte, 100_000)
	expect.NoError(t, w.try(e))
	crash := crashCopy(t, dir)
	release()
	want = collectEvents(t, s.Log(t.Context(), 1))
	closeStore(t, s)
	return crash, s.Descriptor(), want
}

// What a killed process has left is written again as it is before a projection of it can be durable, also by
// whoever opens a store whose disk is full. Whoever only reads writes nothing.
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
		expect.Equal(t, want, collectEvents(t, s.Log(t.Context(), 1)), what)
		expect.Equal(t, c.written, written(), what)
		if !maps.Equal(before, filesOf(t, dir)) {
			t.Errorf("%s: a file was changed", what)
		}
		closeStore(t, s)
	}
}
