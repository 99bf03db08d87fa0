package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
	"github.com/partita-go/partita/storage/verify"
)

// Writes pass the system's cache by where there are such writes, and are made without where there
// are none: here, of what is no whole sector.
func TestCreateSynced(t *testing.T) {
	dir := t.TempDir()
	d := held(t, dir)
	for name, length := range map[string]int64{"whole blocks": wal.BlockLen, "less than a sector": 100} {
		block := (&wal.Writer{}).Aligned(length)
		block[0] = 1
		tried, err := d.MakeFile("tried "+name, syscall.O_DSYNC)
		expect.NoError(t, err)
		direct := wal.SetDirect(tried, true) == nil && !errors.Is(wal.WriteSynced(tried, block, 0), syscall.EINVAL)
		expect.NoError(t, tried.Close())
		f, err := wal.CreateSynced(d, name, block)
		expect.NoError(t, err, name)
		flags, _, _ := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_GETFL, 0)
		expect.Equal(t, 2, openBelow(t, dir), "open files, with the directory")
		expect.NoError(t, f.Close())
		expect.Equal(t, direct, flags&syscall.O_DIRECT != 0, name)
		expect.Equal(t, true, flags&syscall.O_DSYNC != 0, name)
		got, err := os.ReadFile(filepath.Join(dir, name))
		expect.NoError(t, err)
		expect.Equal(t, block, got)
	}
}

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

// Where there is a file, none is made, and it is left as it is.
func TestCreateSyncedMakesAFile(t *testing.T) {
	dir := t.TempDir()
	expect.NoError(t, os.WriteFile(walPath(dir), []byte("x"), 0o600))
	f, err := wal.CreateSynced(held(t, dir), format.WALFileName, (&wal.Writer{}).Aligned(wal.BlockLen))
	expect.ErrorIs(t, err, os.ErrExist)
	expect.Equal(t, true, f == nil)
	expect.Equal(t, map[string]string{format.WALFileName: "x"}, filesOf(t, dir))
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
