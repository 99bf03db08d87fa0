package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/partita-go/partita/storage"
)

// directory is where the files of a store are. It is held by a handle: what is done to a file is
// done in this directory, wherever it is moved to, and whatever is under its name by then. So all
// of the package does with the files of a store goes through it.
type directory struct {
	root *os.Root
	// path is the name that it was opened by, made absolute then: the working directory may
	// change. Errors name it, and who looks whether the directory is still there.
	path string
	// identity is which directory it is.
	identity os.FileInfo

	// beforeSync is a fault to inject in tests; nil otherwise.
	beforeSync func() error
}

// openDirectory holds a directory. Close must be called.
func openDirectory(name string) (*directory, error) {
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
	d := &directory{root: root, path: path}
	if d.identity, err = root.Stat("."); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if d.displaced() != nil {
		// Where ".." stands behind a link, the text of the name says something else.
		if resolved, err := filepath.EvalSymlinks(name); err == nil {
			if d.path, err = filepath.Abs(resolved); err != nil {
				return nil, errors.Join(err, root.Close())
			}
		}
	}
	return d, nil
}

// close lets go of it.
func (d *directory) close() error {
	if d == nil {
		return nil
	}
	return d.root.Close()
}

// join returns the path of a file, for those who are to find it.
func (d *directory) join(name string) string { return filepath.Join(d.path, name) }

// whole lets an error of the root name a path. The root is closed when the store is.
func (d *directory) whole(err error) error {
	if errors.Is(err, fs.ErrClosed) {
		return storage.ErrClosed
	}
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		failed.Path = d.join(failed.Path)
	}
	return err
}

func (d *directory) openFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := d.root.OpenFile(name, flag, mode)
	return f, d.whole(err)
}

// makeFile makes a file, which must not be there. flags say more of how it is opened.
func (d *directory) makeFile(name string, flags int) (*os.File, error) {
	return d.openFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|flags, 0o600)
}

// stat tells of what has a name, be it a link.
func (d *directory) stat(name string) (os.FileInfo, error) {
	info, err := d.root.Lstat(name)
	return info, d.whole(err)
}

func (d *directory) remove(name string) error { return d.whole(d.root.Remove(name)) }

// mustBe makes sure that the file under a name is the one that is open. As long as that is open, no other file
// can get its identity.
func (d *directory) mustBe(name string, f *os.File) error {
	there, err := d.stat(name)
	if err != nil {
		return err
	}
	return d.compare(name, there, f)
}

func (d *directory) compare(name string, there os.FileInfo, f *os.File) error {
	held, err := f.Stat()
	if err == nil && !os.SameFile(there, held) {
		err = d.notOurs(name)
	}
	return err
}

// removeOnly removes the file that is open from its name, durably. Another file that has the name by now
// is left as it is, and told; that there is none is as good.
func (d *directory) removeOnly(name string, f *os.File) error {
	err := d.mustBe(name, f)
	if err == nil {
		err = d.remove(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.sync()
}

// notOurs says that somebody else has put a file where this store has its own.
func (d *directory) notOurs(name string) error {
	return fmt.Errorf("%w: %s: somebody else has put it there; it is left as it is: move it to where it belongs",
		storage.ErrForeign, d.join(name))
}

// publish gives a file its final name unless that is taken. The lock is the
// file's, not the name's, so that it stays. Where the file system has no hard
// links, the file is renamed.
func (d *directory) publish(temporary, final string) error {
	err := d.root.Link(temporary, final)
	if err == nil {
		return d.remove(temporary)
	}
	if _, statErr := d.stat(final); statErr == nil || errors.Is(err, fs.ErrExist) {
		return errors.Join(fmt.Errorf("%w: %s was made by another process", storage.ErrLocked, d.join(final)), d.remove(temporary))
	}
	return d.root.Rename(temporary, final)
}

// sync makes names durable, where directories can be synced.
func (d *directory) sync() error {
	if d.beforeSync != nil {
		if err := d.beforeSync(); err != nil {
			return err
		}
	}
	f, err := d.openFile(".", os.O_RDONLY, 0)
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

// present reports whether a file is there and has anything in it. A link is none: what it leads to is
// not in the directory, and may be another file at any time.
func (d *directory) present(name string) (bool, error) {
	info, err := d.stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.Mode()&os.ModeSymlink != 0:
		return false, fmt.Errorf("%w: %s: a link, want the file itself; the directory may be a link", storage.ErrForeign, d.join(name))
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%w: %s: not a regular file", storage.ErrForeign, d.join(name))
	}
	return info.Size() > 0, nil
}

// presentWhole is present for a file that gets its name when it is complete: one of 0 bytes was
// cut to nothing.
func (d *directory) presentWhole(name string) (there bool, err error) {
	if there, err = d.present(name); err != nil || there {
		return there, err
	}
	_, err = d.stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return false, &storage.DamagedError{Where: "file " + d.join(name), Cause: fmt.Errorf("%w: got 0 bytes", errTruncated)}
}

// presentAs reports whether a file of a store is there.
func (d *directory) presentAs(name string) (bool, error) {
	if name == subscriptionsFileName {
		return d.presentWhole(name)
	}
	return d.present(name)
}

// displaced returns nil as long as the directory is the one under its name.
func (d *directory) displaced() error {
	now, err := os.Stat(d.path)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", storage.ErrDisplaced, err)
	case !os.SameFile(now, d.identity):
		return fmt.Errorf("%w: %s: another directory", storage.ErrDisplaced, d.path)
	}
	return nil
}
