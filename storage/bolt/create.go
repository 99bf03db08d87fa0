package bolt

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
)

// newFilePrefix stands in the names of what is being made, and newFilePattern is for those that the system completes.
const (
	newFilePrefix  = ".new-"
	newFilePattern = newFilePrefix + "*"
)

// create makes a file with its header and buckets. It is made under another name
// and takes its own only when it is complete and synced, so that a crash leaves
// either nothing or a file that opens. It never replaces a file.
//
// An empty file under the name is taken as it is: nothing can be lost in it, and
// it cannot be replaced safely.
func (op *opening) create(r role) (*file, error) {
	d, final := op.directory, r.fileName()
	if _, err := d.stat(final); err == nil {
		f, err := op.initialise(final, r)
		if err != nil {
			return nil, err
		}
		return f, nil
	}
	temporary, err := d.reserveName(final + newFilePrefix)
	if err != nil {
		return nil, err
	}
	f, err := op.initialise(temporary, r)
	if err != nil {
		return nil, errors.Join(err, d.remove(temporary))
	}
	if err := errors.Join(d.publish(temporary, final), d.sync()); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// reserveName makes an empty file with a new name.
func (d *directory) reserveName(prefix string) (string, error) {
	name := prefix + rand.Text()
	f, err := d.makeFile(name, 0)
	if err != nil {
		return "", err
	}
	return name, f.Close()
}

// initialise writes header and buckets into an empty file.
func (op *opening) initialise(name string, r role) (*file, error) {
	f, err := openFile(op.directory, name, op.path(r.fileName()), op.bboltOptions(r, false))
	if err != nil {
		return nil, err
	}
	h := header{role: r, id: op.id, descriptor: op.descriptor}
	err = f.update(func(tx *bbolt.Tx) error {
		for _, name := range r.buckets() {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		if err := beginFile(r, tx); err != nil {
			return err
		}
		return tx.Bucket(bucketHeader).Put(keyHeader, h.encode())
	})
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// makeDirs makes a directory and those above it that are not there. sync is called for
// what each of them stands in: without that a loss of power takes it, with all in it. What
// it is called for is taken back if that fails.
func makeDirs(dir string, sync func(dir string) error) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%w: %s: not a directory", storage.ErrForeign, dir)
	case err == nil:
		// Whoever made it may have been killed before this.
		return sync(filepath.Dir(dir))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	above := filepath.Dir(dir)
	if above == dir {
		return err
	}
	if err := makeDirs(above, sync); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if there, statErr := os.Stat(dir); statErr != nil || !there.IsDir() {
			return err
		}
		return sync(above)
	}
	if err := sync(above); err != nil {
		return errors.Join(err, os.Remove(dir))
	}
	return nil
}

// syncAbove is syncDir for a directory in which one was made: it need not be allowed to
// be read.
func syncAbove(dir string) error {
	if err := syncDir(dir); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// syncDir makes names durable, where directories can be synced.
func syncDir(dir string) error {
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return syncNames(d)
}
