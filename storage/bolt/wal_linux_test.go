package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Writes pass the system's cache by where there are such writes, and are made without where there
// are none: here, of what is no whole sector.
func TestCreateSynced(t *testing.T) {
	dir := t.TempDir()
	for name, length := range map[string]int64{"whole blocks": walBlockLen, "less than a sector": 100} {
		block := (&wal{}).aligned(length)
		block[0] = 1
		tried, err := createWith(walFlags|syscall.O_DIRECT, filepath.Join(dir, "tried "+name), block)
		direct := !errors.Is(err, syscall.EINVAL)
		if tried != nil {
			noError(t, tried.Close())
		}
		path := filepath.Join(dir, name)
		f, err := createSynced(path, block)
		noError(t, err, name)
		flags, _, _ := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_GETFL, 0)
		equal(t, 1, openBelow(t, dir), "open files")
		noError(t, f.Close())
		equal(t, direct, flags&syscall.O_DIRECT != 0, name)
		equal(t, true, flags&syscall.O_DSYNC != 0, name)
		got, err := os.ReadFile(path)
		noError(t, err)
		equal(t, block, got)
	}
}

// openBelow returns how many files of a directory the process has open.
func openBelow(t *testing.T, dir string) (n int) {
	t.Helper()
	const mine = "/proc/self/fd"
	all, err := os.ReadDir(mine)
	noError(t, err)
	for _, fd := range all {
		if name, err := os.Readlink(filepath.Join(mine, fd.Name())); err == nil && strings.HasPrefix(name, dir) {
			n++
		}
	}
	return n
}

// Where there is a file, none is made.
func TestCreateSyncedMakesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), walFileName)
	noError(t, os.WriteFile(path, []byte("x"), 0o600))
	f, err := createSynced(path, (&wal{}).aligned(walBlockLen))
	errorIs(t, err, os.ErrExist)
	equal(t, true, f == nil)
}

// A file that was read is not open any more.
func TestReadAtMostCloses(t *testing.T) {
	dir := t.TempDir()
	noError(t, os.WriteFile(walPath(dir), []byte("x"), 0o600))
	_, err := readAtMost(walPath(dir), 1)
	noError(t, err)
	equal(t, 0, openBelow(t, dir))
}
