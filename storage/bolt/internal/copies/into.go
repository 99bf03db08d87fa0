package copies

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// ErrExists is returned when a copy would go where there is something already: something else
// than an empty directory, or one that cannot be replaced.
var ErrExists = errors.New("there is something already")

// Into lets build make and check a copy in a new directory beside the final one, and gives it the final name, which
// must be free or that of an empty directory. So there is a whole copy under that name, or nothing.
func Into(dir string, build func(temporary *boltfile.Directory) error) (err error) {
	if dir, err = placeFor(dir); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+boltfile.NewFilePattern)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temporary))
		}
	}()
	if err := fill(temporary, build); err != nil {
		return err
	}
	return publishDir(temporary, dir)
}

// MayBe returns why there can't be a copy under a name, nil if there can. It must be free, or an empty directory's.
func MayBe(dir string) error {
	dir = filepath.Clean(dir)
	switch name := filepath.Base(dir); name {
	case format.LogFileName, format.WALFileName, format.StateFileName, format.SubscriptionsFileName, format.IDsFileName:
		return fmt.Errorf("%w: %s: a store beside it would take it for its own %s", ErrExists, dir, name)
	}
	return mustBeFree(dir)
}

// placeFor returns the absolute name of a copy, which may be there, and makes the directories above it.
func placeFor(dir string) (string, error) {
	if err := MayBe(dir); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(filepath.Clean(dir)) // the working directory may change meanwhile
	if err != nil {
		return "", err
	}
	return dir, boltfile.MakeDirs(filepath.Dir(dir), boltfile.SyncAbove)
}

// fill makes the copy in its directory, and makes it durable.
func fill(temporary string, build func(temporary *boltfile.Directory) error) (err error) {
	d, err := boltfile.OpenDirectory(temporary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := build(d); err != nil {
		return err
	}
	return d.Sync()
}

// wantRoom is what a target must be.
const wantRoom = "want nothing there, or an empty directory that can be replaced"

// mustBeFree returns ErrExists unless nothing is there, or an empty directory that can make
// room for another one. Renaming it away and back shows that at once: that a mount point
// cannot is not to be found out only when the copy is finished.
func mustBeFree(dir string) error {
	there, err := isEmptyDir(dir)
	if err != nil || !there {
		return err
	}
	away, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+boltfile.NewFilePattern)
	if err != nil {
		return err
	}
	if err := os.Remove(away); err != nil {
		return err
	}
	if err := os.Rename(dir, away); err != nil {
		return fmt.Errorf("%w: %w; %s", ErrExists, err, wantRoom)
	}
	return os.Rename(away, dir)
}

// isEmptyDir reports whether there is anything under a name, which must be an empty directory.
// All else that is there is ErrExists, a link to one too.
func isEmptyDir(name string) (there bool, err error) {
	was, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !was.IsDir():
		return true, fmt.Errorf("%w: %s: got a file or a link (%v), %s", ErrExists, name, was.Mode(), wantRoom)
	}
	entries, err := os.ReadDir(name)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty", name)
	}
	if err != nil {
		return true, fmt.Errorf("%w: %w; %s", ErrExists, err, wantRoom)
	}
	return true, nil
}

// makeRoom removes the empty directory that has a name, if there is one.
func makeRoom(name string) error {
	there, err := isEmptyDir(name)
	if err != nil || !there {
		return err
	}
	if err := syscall.Rmdir(name); err != nil {
		return fmt.Errorf("%w: remove %s: %w; %s", ErrExists, name, err, wantRoom)
	}
	return nil
}

// publishDir gives a directory its final name. An empty directory of that name makes room.
func publishDir(temporary, final string) error {
	if err := makeRoom(final); err != nil {
		return err
	}
	if err := os.Rename(temporary, final); err != nil {
		return err
	}
	return boltfile.SyncAbove(filepath.Dir(final))
}
