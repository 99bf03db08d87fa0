package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
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

// A path that was mistyped, and a volume that is not mounted, are no new store unless the options say so.
func TestNoSilentNewStore(t *testing.T) {
	d, missing, empty := testDescriptor(1, messages.TrustNone), filepath.Join(t.TempDir(), "missing"), t.TempDir()
	for _, dir := range []string{missing, empty} {
		for _, o := range []Options{{}, {ReadOnly: true}, {ReadOnly: true, Create: true}} {
			_, err := Open(t.Context(), dir, d, o)
			expect.ErrorIs(t, err, storage.ErrNotFound)
			if text := err.Error(); !strings.Contains(text, dir) || !o.ReadOnly && !strings.Contains(text, "Options.Create") {
				t.Errorf("got %q, want the directory, and what to do", text)
			}
		}
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the directory was not made", err)
	}
	expect.Equal(t, 0, len(filesOf(t, empty)))
	twice := d.Normalized()
	twice.Kinds = append(twice.Kinds, messages.Kind{ID: 2, Name: twice.Kinds[0].Name})
	for _, dir := range []string{missing, empty} {
		_, err := Open(t.Context(), dir, twice, Options{Create: true})
		expect.ErrorIs(t, err, messages.ErrDescriptor)
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that what is refused makes no directory", err)
	}
	expect.Equal(t, 0, len(filesOf(t, empty)))
	for _, dir := range []string{missing, empty} {
		for _, o := range []Options{{Create: true}, {}, {Create: true}} {
			s, err := Open(t.Context(), dir, d, o)
			expect.NoError(t, err)
			closeStore(t, s)
		}
	}
}
