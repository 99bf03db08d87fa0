package boltfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// What a new directory stands in is synced, from the top down, and what the first one that is
// there stands in: it may be new, too.
func TestMakeDirsSyncs(t *testing.T) {
	base := t.TempDir()
	at := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	expect.NoError(t, os.WriteFile(at("file"), nil, 0o600))
	for _, test := range []struct {
		dir  string
		want []string
	}{
		{at("a", "b", "c"), []string{filepath.Dir(base), base, at("a"), at("a", "b")}},
		{at("a", "b", "c"), []string{at("a", "b")}},
		{at("a", "b", "d"), []string{at("a"), at("a", "b")}},
		{base, []string{filepath.Dir(base)}},
	} {
		var synced []string
		expect.NoError(t, boltfile.MakeDirs(test.dir, func(dir string) error {
			synced = append(synced, dir)
			return nil
		}))
		if info, err := os.Stat(test.dir); err != nil || !info.IsDir() || !slices.Equal(synced, test.want) {
			t.Errorf("%s: got %v, %v, synced %v, want %v", test.dir, info, err, synced, test.want)
		}
	}
	// What could not be made durable is made again.
	expect.ErrorIs(t, boltfile.MakeDirs(at("e", "f"), func(dir string) error {
		if dir == base {
			return os.ErrInvalid
		}
		return nil
	}), os.ErrInvalid)
	if _, err := os.Stat(at("e")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after a failed sync: got %v", err)
	}
	expect.ErrorIs(t, boltfile.MakeDirs("", boltfile.SyncDir), os.ErrNotExist)
	expect.ErrorIs(t, boltfile.MakeDirs(at("file"), boltfile.SyncDir), storage.ErrForeign)
	if err := boltfile.MakeDirs(at("file", "below"), boltfile.SyncDir); err == nil {
		t.Error("a directory below a file: got no error")
	}
}
