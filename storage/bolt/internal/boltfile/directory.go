package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Directory is where the files of a store are. It is held by a handle: what is done to a file is
// done in this directory, wherever it is moved to, and whatever is under its name by then. So all
// of the package does with the files of a store goes through it.
type Directory struct {
	root *os.Root
	// Path is the name that it was opened by, made absolute then: the working directory may
	// change. Errors name it, and who looks whether the directory is still there.
	Path string
	// Identity is which directory it is.
	Identity os.FileInfo
}

// Synced is a file that was made to be written.
type Synced interface {
	fs.File
	// WriteSynced writes b, and returns when it is durable.
	WriteSynced(b []byte, at int64) error
}

type synced struct{ *os.File }

// OpenDirectory holds a directory. Close must be called.
func OpenDirectory(name string) (*Directory, error) {
	path := name
	if name != "" { // that is no name, and not the working directory
		var err error
		if path, err = filepath.Abs(name); err != nil {
			return nil, err
		}
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%w: %s: not a directory", storage.ErrForeign, path)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	d := &Directory{root: root, Path: path}
	if d.Identity, err = root.Stat("."); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if d.Displaced() != nil {
		// Where ".." stands behind a link, the text of the name says something else.
		if resolved, err := filepath.EvalSymlinks(name); err == nil {
			if d.Path, err = filepath.Abs(resolved); err != nil {
				return nil, errors.Join(err, root.Close())
			}
		}
	}
	return d, nil
}

// Close lets go of it.
func (d *Directory) Close() error {
	if d == nil {
		return nil
	}
	return d.root.Close()
}

// Join returns the path of a file, for those who are to find it.
func (d *Directory) Join(name string) string { return filepath.Join(d.Path, name) }

// whole lets an error of the root name a path. The root is closed when the store is.
func (d *Directory) whole(err error) error {
	if errors.Is(err, fs.ErrClosed) {
		return storage.ErrClosed
	}
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		failed.Path = d.Join(failed.Path)
	}
	return err
}

// OpenFile is os.OpenFile in the directory.
func (d *Directory) OpenFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := d.root.OpenFile(name, flag, mode)
	return f, d.whole(err)
}

// MakeFile makes a file, which must not be there. flags say more of how it is opened.
func (d *Directory) MakeFile(name string, flags int) (*os.File, error) {
	return d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|flags, 0o600)
}

// Stat tells of what has a name, be it a link.
func (d *Directory) Stat(name string) (os.FileInfo, error) {
	info, err := d.root.Lstat(name)
	return info, d.whole(err)
}

// Remove removes what has a name.
func (d *Directory) Remove(name string) error { return d.whole(d.root.Remove(name)) }

// MustBe makes sure that the file under a name is the one that is open. As long as that is open, no other file
// can get its identity.
func (d *Directory) MustBe(name string, f fs.File) error {
	there, err := d.Stat(name)
	if err != nil {
		return err
	}
	return d.Compare(name, there, f)
}

// Compare makes sure that what was seen under a name is the file that is open.
func (d *Directory) Compare(name string, there os.FileInfo, f fs.File) error {
	held, err := f.Stat()
	if err == nil && !os.SameFile(there, held) {
		err = d.NotOurs(name)
	}
	return err
}

// RemoveOnly removes the file that is open from its name. Another file that has the name by now
// is left as it is, and told; that there is none is as good.
func (d *Directory) RemoveOnly(name string, f fs.File) error {
	err := d.MustBe(name, f)
	if err == nil {
		err = d.Remove(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// NotOurs says that somebody else has put a file where this store has its own.
func (d *Directory) NotOurs(name string) error {
	return fmt.Errorf("%w: %s: somebody else has put it there; it is left as it is: move it to where it belongs",
		storage.ErrForeign, d.Join(name))
}

// Publish gives a file its final name unless that is taken. The lock is the
// file's, not the name's, so that it stays. Where the file system has no hard
// links, the file is renamed.
func (d *Directory) Publish(temporary, final string) error {
	err := d.root.Link(temporary, final)
	if err == nil {
		return d.Remove(temporary)
	}
	if _, statErr := d.Stat(final); statErr == nil || errors.Is(err, fs.ErrExist) {
		return errors.Join(fmt.Errorf("%w: %s was made by another process", storage.ErrLocked, d.Join(final)), d.Remove(temporary))
	}
	return d.root.Rename(temporary, final)
}

// Sync makes names durable, where directories can be synced.
func (d *Directory) Sync() error {
	f, err := d.OpenFile(".", os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return syncNames(f)
}

// syncNames syncs a directory that is open, where that can be done, and closes it.
func syncNames(f *os.File) error {
	err := f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, os.ErrPermission) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// Present reports whether a file is there and has anything in it. A link is none: what it leads to is
// not in the directory, and may be another file at any time.
func (d *Directory) Present(name string) (bool, error) {
	info, err := d.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.Mode()&os.ModeSymlink != 0:
		return false, fmt.Errorf("%w: %s: a link, want the file itself; the directory may be a link", storage.ErrForeign, d.Join(name))
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%w: %s: not a regular file", storage.ErrForeign, d.Join(name))
	}
	return info.Size() > 0, nil
}

// PresentWhole is present for a file that gets its name when it is complete: one of 0 bytes was
// cut to nothing.
func (d *Directory) PresentWhole(name string) (there bool, err error) {
	if there, err = d.Present(name); err != nil || there {
		return there, err
	}
	_, err = d.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return false, &storage.DamagedError{Where: "file " + d.Join(name), Cause: fmt.Errorf("%w: got 0 bytes", format.ErrTruncated)}
}

// PresentAs reports whether a file of a store is there.
func (d *Directory) PresentAs(name string) (bool, error) {
	if name == format.SubscriptionsFileName || name == format.IDsFileName {
		return d.PresentWhole(name)
	}
	return d.Present(name)
}

// Displaced returns nil as long as the directory is the one under its name.
func (d *Directory) Displaced() error {
	now, err := os.Stat(d.Path)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", storage.ErrDisplaced, err)
	case !os.SameFile(now, d.Identity):
		return fmt.Errorf("%w: %s: another directory", storage.ErrDisplaced, d.Path)
	}
	return nil
}

// SizeOf returns the size of a role's file, 0 if there is none.
func (d *Directory) SizeOf(r format.Role) int64 {
	info, err := d.Stat(r.FileName())
	if err != nil {
		return 0
	}
	return info.Size()
}
