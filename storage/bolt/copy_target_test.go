package bolt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/verify"
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

// A link is not followed and not replaced, wherever it leads.
func TestCopyKeepsLinks(t *testing.T) {
	dir, s := verifiableToRead(t)
	base := t.TempDir()
	empty := mkdir(t, filepath.Join(base, "empty"))
	for name, to := range map[string]string{"to an empty directory": empty, "to nothing": filepath.Join(base, "nothing"), "to a store": dir} {
		link := filepath.Join(base, "link")
		expect.NoError(t, os.Symlink(to, link))
		for kind, copyTo := range eachCopy(s, dir) {
			for _, path := range []string{link, link + string(filepath.Separator)} {
				_, err := copyTo(t.Context(), path, CopyOptions{})
				expect.ErrorIs(t, err, ErrExists, kind, "a link", name)
				expect.Equal(t, true, strings.Contains(err.Error(), link), err)
				got, err := os.Readlink(link)
				expect.NoError(t, err, kind, "a link", name)
				expect.Equal(t, to, got)
			}
		}
		expect.NoError(t, os.Remove(link))
	}
	expect.NoError(t, os.Remove(empty))
	nothingAt(t, filepath.Join(base, "link"))
}

// A link that comes while the copy is made is not replaced either.
func TestCopyKeepsLateLink(t *testing.T) {
	dir, s := verifiableToRead(t)
	for kind, copyTo := range eachCopy(s, dir) {
		link := filepath.Join(t.TempDir(), "link")
		_, err := copyTo(t.Context(), link, CopyOptions{Progress: func(CopyProgress) { _ = os.Symlink(dir, link) }})
		expect.ErrorIs(t, err, ErrExists, kind)
		got, err := os.Readlink(link)
		expect.NoError(t, err, kind)
		expect.Equal(t, dir, got)
	}
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

// An empty directory that was there is there again, as it was, if the copy is not finished.
func TestCopyLeavesEmptyDirectory(t *testing.T) {
	dir, s := verifiableToRead(t)
	for kind, copyTo := range eachCopy(s, dir) {
		to := mkdir(t, filepath.Join(t.TempDir(), "to"))
		expect.NoError(t, os.Chmod(to, 0o500))
		ctx, cancel := context.WithCancel(t.Context())
		_, err := copyTo(ctx, to, CopyOptions{Progress: func(CopyProgress) { cancel() }})
		expect.ErrorIs(t, err, context.Canceled, kind)
		info, err := os.Stat(to)
		expect.NoError(t, err, kind)
		expect.Equal(t, os.ModeDir|0o500, info.Mode(), kind)
		nothingAt(t, filepath.Join(to, "copy"))
		expect.NoError(t, os.Remove(to))
		nothingAt(t, to)
	}
}

// Where nothing can be, nothing is said to be there already.
func TestCopyTargetCannotBe(t *testing.T) {
	dir, s := verifiableToRead(t)
	file := filepath.Join(t.TempDir(), "file")
	expect.NoError(t, os.WriteFile(file, nil, 0o600))
	for to, want := range map[string]error{
		filepath.Join(file, "below"):                                syscall.ENOTDIR,
		filepath.Join(filepath.Dir(file), strings.Repeat("x", 300)): syscall.ENAMETOOLONG,
	} {
		for kind, copyTo := range eachCopy(s, dir) {
			_, err := copyTo(t.Context(), to, CopyOptions{})
			expect.ErrorIs(t, err, want, kind)
			expect.Equal(t, false, errors.Is(err, ErrExists), kind, err)
		}
	}
}

// A copy goes where its name meant when it was begun: a change of the working directory meanwhile takes no other one's place.
func TestCopyWhileTheWorkingDirectoryChanges(t *testing.T) {
	dir, s := verifiableToRead(t)
	for name, run := range eachCopy(s, dir) {
		t.Run(name, func(t *testing.T) {
			here, elsewhere := t.TempDir(), t.TempDir()
			theirs := mkdir(t, filepath.Join(elsewhere, "copy"))
			before, err := os.Stat(theirs)
			expect.NoError(t, err)
			t.Chdir(here)
			changed := false
			_, err = run(t.Context(), "copy", CopyOptions{Progress: func(CopyProgress) {
				if !changed {
					changed = true
					t.Chdir(elsewhere)
				}
			}})
			expect.NoError(t, err)
			after, err := os.Stat(theirs)
			expect.NoError(t, err)
			expect.Equal(t, true, changed && os.SameFile(before, after))
			expect.NoError(t, verified(t, filepath.Join(here, "copy"), verify.Options{}).Err())
		})
	}
}
