package wal

import (
	"errors"
	"os"
	"path/filepath"
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
}
