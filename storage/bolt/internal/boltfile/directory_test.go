package boltfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/storage"
)

// Only a file that is open is removed from its name.
func TestRemoveOnly(t *testing.T) {
	dir := t.TempDir()
	d := held(t, dir)
	f, err := d.MakeFile("f", 0)
	noError(t, err)
	defer func() { noError(t, f.Close()) }()
	noError(t, os.Remove(filepath.Join(dir, "f")))
	noError(t, d.RemoveOnly("f", f)) // it is gone already
	write(t, filepath.Join(dir, "f"), []byte("another"))
	errorIs(t, d.RemoveOnly("f", f), storage.ErrForeign)
	all, err := os.ReadDir(dir)
	noError(t, err)
	if got := string(read(t, filepath.Join(dir, "f"))); got != "another" || len(all) != 1 {
		t.Errorf("got %q, and %d files", got, len(all))
	}
}
