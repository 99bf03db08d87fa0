package boltfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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

// openIn opens a directory until the end of the test, and returns how many files of it the process has open, too.
func openIn(t *testing.T, dir string) (d *Directory, open func() int) {
	t.Helper()
	d, err := OpenDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, func() (n int) {
		const mine = "/proc/self/fd"
		all, err := os.ReadDir(mine)
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range all {
			if name, err := os.Readlink(filepath.Join(mine, fd.Name())); err == nil && strings.HasPrefix(name, dir) {
				n++
			}
		}
		return n
	}
}

// Writes pass the system's cache by where there are such writes, and are made without where there
// are none: here, of what is no whole sector.
func TestCreateSynced(t *testing.T) {
	dir := t.TempDir()
	d, open := openIn(t, dir)
	for name, length := range map[string]int{"whole blocks": 4096, "less than a sector": 100} {
		block := make([]byte, 1<<20)[:length] // what is so large begins a page
		block[0] = 1
		tried, err := d.MakeFile("tried "+name, syscall.O_DSYNC)
		if err != nil {
			t.Fatal(err)
		}
		direct := setDirect(tried, true) == nil && !errors.Is(synced{tried}.WriteSynced(block, 0), syscall.EINVAL)
		if err := tried.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := d.CreateSynced(name, block)
		if err != nil {
			t.Fatalf("%s: got %v", name, err)
		}
		flags, err := fcntl(f.(synced).File, syscall.F_GETFL, 0)
		if err != nil || flags&syscall.O_DSYNC == 0 || (flags&syscall.O_DIRECT != 0) != direct {
			t.Errorf("%s: got flags %x, error %v; direct: want %v", name, flags, err, direct)
		}
		if n := open(); n != 2 {
			t.Errorf("%s: got %d open files, want the directory and one", name, n)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, block) {
			t.Errorf("%s: got %d bytes, error %v, want what was written", name, len(got), err)
		}
	}
}
