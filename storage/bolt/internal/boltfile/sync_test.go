package boltfile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// Where there is a file, none is made, and it is left as it is.
func TestCreateSyncedMakesAFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	write(t, path, []byte("x"))
	f, err := expect.Opened(t, boltfile.OpenDirectory, dir).CreateSynced("f", make([]byte, 4096))
	expect.ErrorIs(t, err, os.ErrExist)
	expect.Equal(t, true, f == nil)
	expect.Equal(t, "x", string(read(t, path)))
}

// What was written is there, behind the first block too.
func TestWriteSynced(t *testing.T) {
	dir := t.TempDir()
	want := make([]byte, 3<<20) // what is so large begins a page, as direct writes want it
	for i := range want {
		want[i] = byte(i >> 12)
	}
	f, err := expect.Opened(t, boltfile.OpenDirectory, dir).CreateSynced("f", want[:4096])
	expect.NoError(t, err)
	expect.NoError(t, f.WriteSynced(want[8192:], 8192))
	clear(want[4096:8192])
	expect.NoError(t, f.Close())
	if got := read(t, filepath.Join(dir, "f")); !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, or others than were written", len(got))
	}
	expect.ErrorIs(t, f.WriteSynced(want[:4096], 0), os.ErrClosed)
}
