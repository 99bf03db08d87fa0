package boltfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// TestFcntl: the flags of an open file are told, and that one is not open. Otherwise no write would be direct.
func TestFcntl(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "x"), os.O_CREATE|os.O_WRONLY|syscall.O_DSYNC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	flags, err := fcntl(f, syscall.F_GETFL, 0)
	if err != nil || flags&syscall.O_DSYNC == 0 || flags&syscall.O_WRONLY == 0 {
		t.Errorf("got flags %x, error %v, want those of the file", flags, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := fcntl(f, syscall.F_GETFL, 0); !errors.Is(err, syscall.EBADF) {
		t.Errorf("got %v of a closed file, want EBADF", err)
	}
	if err := setDirect(f, true); !errors.Is(err, syscall.EBADF) {
		t.Errorf("direct: got %v of a closed file, want EBADF", err)
	}
}

// openBelow returns how many files of a directory the process has open, with the directory.
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

// Writes pass the system's cache by where there are such writes, and are made without where there
// are none: here, of what is no whole sector.
func TestCreateSynced(t *testing.T) {
	dir := t.TempDir()
	d := expect.Opened(t, OpenDirectory, dir)
	for name, length := range map[string]int{"whole blocks": 4096, "less than a sector": 100} {
		block := make([]byte, 1<<20)[:length] // what is so large begins a page
		block[0] = 1
		tried, err := d.MakeFile("tried "+name, syscall.O_DSYNC)
		expect.NoError(t, err)
		direct := setDirect(tried, true) == nil && !errors.Is(synced{tried}.WriteSynced(block, 0), syscall.EINVAL)
		expect.NoError(t, tried.Close())
		f, err := d.CreateSynced(name, block)
		expect.NoError(t, err, name)
		flags, err := fcntl(f.(synced).File, syscall.F_GETFL, 0)
		expect.NoError(t, err, name)
		expect.Equal(t, 2, openBelow(t, dir), "open files, with the directory")
		expect.NoError(t, f.Close())
		expect.Equal(t, direct, flags&syscall.O_DIRECT != 0, name)
		expect.Equal(t, true, flags&syscall.O_DSYNC != 0, name)
		got, err := os.ReadFile(filepath.Join(dir, name))
		expect.NoError(t, err)
		expect.Equal(t, block, got)
	}
}
