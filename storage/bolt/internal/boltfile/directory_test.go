package boltfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// Only a file that is open is removed from its name.
func TestRemoveOnly(t *testing.T) {
	dir := t.TempDir()
	d := expect.Opened(t, boltfile.OpenDirectory, dir)
	f, err := d.MakeFile("f", 0)
	expect.NoError(t, err)
	defer func() { expect.NoError(t, f.Close()) }()
	expect.NoError(t, os.Remove(filepath.Join(dir, "f")))
	expect.NoError(t, d.RemoveOnly("f", f)) // it is gone already
	write(t, filepath.Join(dir, "f"), []byte("another"))
	expect.ErrorIs(t, d.RemoveOnly("f", f), storage.ErrForeign)
	all, err := os.ReadDir(dir)
	expect.NoError(t, err)
	if got := string(read(t, filepath.Join(dir, "f"))); got != "another" || len(all) != 1 {
		t.Errorf("got %q, and %d files", got, len(all))
	}
}
