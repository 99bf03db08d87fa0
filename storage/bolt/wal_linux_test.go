package bolt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
	"github.com/partita-go/partita/storage/verify"
)

// openBelow returns how many files of a directory the process has open.
func openBelow(t *testing.T, dir string) (n int) {
	t.Helper()
	const mine = "/proc/self/fd"
	all, err := os.ReadDir(mine)
	expect.NoError(t, err)
	for _, fd := range all {
		if name, err := os.Readlink(filepath.Join(mine, fd.Name())); err == nil && strings.HasPrefix(name, dir) {
			n++
		}
	}
	return n
}

// Whoever opens a store and closes it leaves nothing open, whatever came of it.
func TestNothingStaysOpen(t *testing.T) {
	whole, d, _ := leftBehind(t)
	for name, change := range map[string]func(dir string){
		"it opens": func(string) {}, "log.db is missing": func(dir string) { expect.NoError(t, os.Remove(filepath.Join(dir, format.LogFileName))) },
		"log.wal is damaged":    func(dir string) { flip(t, walPath(dir), wal.BlockLen+40) },
		"log.wal is of nothing": func(dir string) { expect.NoError(t, os.Truncate(walPath(dir), 0)) },
	} {
		dir := crashCopy(t, whole)
		change(dir)
		for _, o := range []Options{{ReadOnly: true}, {}} {
			if s, err := Open(t.Context(), dir, d, o); err == nil {
				closeStore(t, s)
			}
			if l, err := OpenLog(t.Context(), dir); err == nil {
				expect.NoError(t, l.Close())
			}
			_, _ = Verify(t.Context(), dir, verify.Options{})
			_, _ = Restore(t.Context(), dir, filepath.Join(t.TempDir(), "to"), CopyOptions{})
			expect.Equal(t, 0, openBelow(t, dir), name, o)
		}
	}
}
