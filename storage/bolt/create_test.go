package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// What a new directory stands in is synced, from the top down, and what the first one that is
// there stands in: it may be new, too.
func TestMakeDirsSyncs(t *testing.T) {
	base := t.TempDir()
	at := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	noError(t, os.WriteFile(at("file"), nil, 0o600))
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
		noError(t, boltfile.MakeDirs(test.dir, func(dir string) error {
			synced = append(synced, dir)
			return nil
		}))
		if info, err := os.Stat(test.dir); err != nil || !info.IsDir() || !slices.Equal(synced, test.want) {
			t.Errorf("%s: got %v, %v, synced %v, want %v", test.dir, info, err, synced, test.want)
		}
	}
	// What could not be made durable is made again.
	errorIs(t, boltfile.MakeDirs(at("e", "f"), func(dir string) error {
		if dir == base {
			return os.ErrInvalid
		}
		return nil
	}), os.ErrInvalid)
	if _, err := os.Stat(at("e")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after a failed sync: got %v", err)
	}
	errorIs(t, boltfile.MakeDirs("", boltfile.SyncDir), os.ErrNotExist)
	errorIs(t, boltfile.MakeDirs(at("file"), boltfile.SyncDir), storage.ErrForeign)
	if err := boltfile.MakeDirs(at("file", "below"), boltfile.SyncDir); err == nil {
		t.Error("a directory below a file: got no error")
	}
}

// A link is no file of the store: where it leads is not in the directory that the store holds, and a
// link that leads nowhere is a file that is away, not one that was never there. The directory may be a link.
func TestLinksAreRefused(t *testing.T) {
	for _, name := range []string{format.LogFileName, format.StateFileName, format.SubscriptionsFileName} {
		t.Run(name, func(t *testing.T) {
			dir, s := verifiable(t)
			d := s.Descriptor()
			noError(t, s.PutSubscription(t.Context(), storage.Subscription{Name: "s"}))
			closeStore(t, s)
			path, away := filepath.Join(dir, name), filepath.Join(t.TempDir(), "away")
			noError(t, os.Rename(path, away))
			noError(t, os.Symlink(filepath.Join(t.TempDir(), "nothing"), path))
			_, err := Open(t.Context(), dir, d, Options{})
			errorIs(t, err, storage.ErrForeign)
			_, err = Verify(t.Context(), dir, verify.Options{})
			errorIs(t, err, storage.ErrForeign)
			_, err = Compact(t.Context(), dir, filepath.Join(t.TempDir(), "copy"), CopyOptions{})
			errorIs(t, err, storage.ErrForeign)
			noError(t, os.Remove(path))
			noError(t, os.Symlink(away, path))
			_, err = Open(t.Context(), dir, d, Options{})
			errorIs(t, err, storage.ErrForeign)
			noError(t, os.Remove(path))
			noError(t, os.Rename(away, path))
			link := filepath.Join(t.TempDir(), "link")
			noError(t, os.Symlink(dir, link))
			closeStore(t, open(t, link, d, Options{}))
		})
	}
}
