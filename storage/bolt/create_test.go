package bolt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
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
			expect.NoError(t, s.PutSubscription(t.Context(), storage.Subscription{Name: "s"}))
			closeStore(t, s)
			path, away := filepath.Join(dir, name), filepath.Join(t.TempDir(), "away")
			expect.NoError(t, os.Rename(path, away))
			expect.NoError(t, os.Symlink(filepath.Join(t.TempDir(), "nothing"), path))
			_, err := Open(t.Context(), dir, d, Options{})
			expect.ErrorIs(t, err, storage.ErrForeign)
			_, err = Verify(t.Context(), dir, verify.Options{})
			expect.ErrorIs(t, err, storage.ErrForeign)
			_, err = Compact(t.Context(), dir, filepath.Join(t.TempDir(), "copy"), CopyOptions{})
			expect.ErrorIs(t, err, storage.ErrForeign)
			expect.NoError(t, os.Remove(path))
			expect.NoError(t, os.Symlink(away, path))
			_, err = Open(t.Context(), dir, d, Options{})
			expect.ErrorIs(t, err, storage.ErrForeign)
			expect.NoError(t, os.Remove(path))
			expect.NoError(t, os.Rename(away, path))
			link := filepath.Join(t.TempDir(), "link")
			expect.NoError(t, os.Symlink(dir, link))
			closeStore(t, open(t, link, d, Options{}))
		})
	}
}
