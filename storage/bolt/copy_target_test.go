package bolt

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// eachCopy are the ways to make a copy of the store s in a directory.
func eachCopy(s *Store, dir string) map[string]func(ctx context.Context, to string, o CopyOptions) (Copied, error) {
	return map[string]func(context.Context, string, CopyOptions) (Copied, error){
		"backup": s.Backup,
		"restore": func(ctx context.Context, to string, o CopyOptions) (Copied, error) {
			return Restore(ctx, dir, to, o)
		},
		"compact": func(ctx context.Context, to string, o CopyOptions) (Copied, error) {
			return Compact(ctx, dir, to, o)
		},
	}
}

// verifiableToRead is the store of verifiable, open to be read.
func verifiableToRead(t *testing.T) (dir string, s *Store) {
	t.Helper()
	dir, s = verifiable(t)
	closeStore(t, s)
	return dir, openToRead(t, dir)
}

// A directory that nobody can remove cannot make room for the copy: that is found out before
// anything is copied. The working directory under this name is one, like a mount point.
func TestCopyTargetStays(t *testing.T) {
	dir, s := verifiableToRead(t)
	for kind, copyTo := range eachCopy(s, dir) {
		here := t.TempDir()
		t.Chdir(here)
		begun := false
		_, err := copyTo(t.Context(), ".", CopyOptions{Progress: func(CopyProgress) { begun = true }})
		expect.ErrorIs(t, err, ErrExists, kind)
		expect.Equal(t, false, begun, kind, "was begun")
		nothingAt(t, filepath.Join(here, "copy"))
	}
}
