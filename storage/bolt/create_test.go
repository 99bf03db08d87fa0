package bolt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

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
