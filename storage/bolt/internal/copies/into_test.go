package copies_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/copies"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// filled makes what a copy consists of here.
func filled(temporary *boltfile.Directory) error {
	return os.WriteFile(temporary.Join("file"), []byte("copied"), 0o600)
}

// unwanted is a build that must not begin.
func unwanted(t *testing.T) func(*boltfile.Directory) error {
	return func(*boltfile.Directory) error {
		t.Error("the copy was begun")
		return nil
	}
}

func mkdir(t *testing.T, dir string) string {
	t.Helper()
	expect.NoError(t, os.Mkdir(dir, 0o700))
	return dir
}

// names are what a directory has.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	expect.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// copied makes sure that there is the whole copy, and nothing beside it.
func copied(t *testing.T, to string) {
	t.Helper()
	expect.Equal(t, []string{filepath.Base(to)}, names(t, filepath.Dir(to)))
	expect.Equal(t, []string{"file"}, names(t, to))
}

// A copy goes where nothing is, or an empty directory, and makes the directories above it.
func TestIntoWhatIsFree(t *testing.T) {
	base := t.TempDir()
	for _, to := range []string{
		filepath.Join(base, "new"), mkdir(t, filepath.Join(mkdir(t, filepath.Join(base, "above")), "empty")), filepath.Join(base, "a", "b", "c"),
	} {
		expect.NoError(t, copies.Into(to, filled), to)
		expect.Equal(t, []string{"file"}, names(t, to))
	}
	expect.Equal(t, []string{"a", "above", "new"}, names(t, base))
}

// What is there stays, and no copy of it is begun.
func TestIntoWhatIsTaken(t *testing.T) {
	base := t.TempDir()
	full := mkdir(t, filepath.Join(base, "full"))
	expect.NoError(t, os.WriteFile(filepath.Join(full, "x"), nil, 0o600))
	taken := []string{full, filepath.Join(full, "x")}
	for _, name := range []string{format.LogFileName, format.WALFileName, format.StateFileName, format.SubscriptionsFileName} {
		taken = append(taken, filepath.Join(base, name))
	}
	for _, to := range taken {
		expect.ErrorIs(t, copies.Into(to, unwanted(t)), copies.ErrExists, to)
	}
	expect.Equal(t, []string{"full"}, names(t, base))
	expect.Equal(t, []string{"x"}, names(t, full))
}

// A link is not followed and not replaced, wherever it leads.
func TestIntoKeepsLinks(t *testing.T) {
	base := t.TempDir()
	empty := mkdir(t, filepath.Join(base, "empty"))
	for name, to := range map[string]string{"to an empty directory": empty, "to nothing": filepath.Join(base, "nothing")} {
		link := filepath.Join(base, "link")
		expect.NoError(t, os.Symlink(to, link))
		for _, path := range []string{link, link + string(filepath.Separator)} {
			err := copies.Into(path, unwanted(t))
			expect.ErrorIs(t, err, copies.ErrExists, name)
			expect.Equal(t, true, strings.Contains(err.Error(), link), err)
			got, err := os.Readlink(link)
			expect.NoError(t, err, name)
			expect.Equal(t, to, got)
		}
		expect.NoError(t, os.Remove(link))
	}
	expect.Equal(t, []string{"empty"}, names(t, base))
}

// What comes while the copy is made is not replaced either.
func TestIntoKeepsWhatComesLate(t *testing.T) {
	away := t.TempDir()
	for name, come := range map[string]func(to string) error{
		"a link":      func(to string) error { return os.Symlink(away, to) },
		"a file":      func(to string) error { return os.WriteFile(to, nil, 0o600) },
		"a directory": func(to string) error { return os.MkdirAll(filepath.Join(to, "theirs"), 0o700) },
	} {
		base := t.TempDir()
		to := filepath.Join(base, "to")
		var before os.FileInfo
		err := copies.Into(to, func(temporary *boltfile.Directory) error {
			err := come(to)
			if err == nil {
				before, err = os.Lstat(to)
			}
			return errors.Join(err, filled(temporary))
		})
		expect.ErrorIs(t, err, copies.ErrExists, name)
		after, err := os.Lstat(to)
		expect.NoError(t, err, name)
		expect.Equal(t, true, os.SameFile(before, after), name)
		expect.Equal(t, []string{"to"}, names(t, base), name)
	}
}

// An empty directory that was there is there again, as it was, if the copy is not finished; else nothing is.
func TestIntoLeavesNothing(t *testing.T) {
	base := t.TempDir()
	empty := mkdir(t, filepath.Join(base, "empty"))
	expect.NoError(t, os.Chmod(empty, 0o500))
	fails := func(temporary *boltfile.Directory) error {
		return errors.Join(filled(temporary), errors.ErrUnsupported)
	}
	for _, to := range []string{empty, filepath.Join(base, "new")} {
		expect.ErrorIs(t, copies.Into(to, fails), errors.ErrUnsupported, to)
	}
	expect.Equal(t, []string{"empty"}, names(t, base))
	info, err := os.Stat(empty)
	expect.NoError(t, err)
	expect.Equal(t, os.ModeDir|0o500, info.Mode())
}

// Where nothing can be, nothing is said to be there already.
func TestIntoWhatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	expect.NoError(t, os.WriteFile(file, nil, 0o600))
	for to, want := range map[string]error{
		filepath.Join(file, "below"):                                syscall.ENOTDIR,
		filepath.Join(filepath.Dir(file), strings.Repeat("x", 300)): syscall.ENAMETOOLONG,
	} {
		err := copies.Into(to, unwanted(t))
		expect.ErrorIs(t, err, want)
		expect.Equal(t, false, errors.Is(err, copies.ErrExists), err)
	}
}

// A copy goes where its name meant when it was begun: a change of the working directory meanwhile takes no other one's place.
func TestIntoWhileTheWorkingDirectoryChanges(t *testing.T) {
	here, elsewhere := t.TempDir(), t.TempDir()
	theirs := mkdir(t, filepath.Join(elsewhere, "copy"))
	t.Chdir(here)
	expect.NoError(t, copies.Into("copy", func(temporary *boltfile.Directory) error {
		t.Chdir(elsewhere)
		return filled(temporary)
	}))
	expect.Equal(t, 0, len(names(t, theirs)))
	copied(t, filepath.Join(here, "copy"))
}
