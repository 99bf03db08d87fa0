package boltfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/partita-go/partita/storage"
)

// NewFilePrefix stands in the names of what is being made, and NewFilePattern is for those that the system completes.
const (
	NewFilePrefix  = ".new-"
	NewFilePattern = NewFilePrefix + "*"
)

// ReserveName makes an empty file with a new name.
func (d *Directory) ReserveName(prefix string) (string, error) {
	name := prefix + rand.Text()
	f, err := d.MakeFile(name, 0)
	if err != nil {
		return "", err
	}
	return name, f.Close()
}

// MakeDirs makes a directory and those above it that are not there. sync is called for
// what each of them stands in: without that a loss of power takes it, with all in it. What
// it is called for is taken back if that fails.
func MakeDirs(dir string, sync func(dir string) error) error {
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
	if err := MakeDirs(above, sync); err != nil {
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

// SyncAbove is SyncDir for a directory in which one was made: it need not be allowed to
// be read.
func SyncAbove(dir string) error {
	if err := SyncDir(dir); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// SyncDir makes names durable, where directories can be synced.
func SyncDir(dir string) error {
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return syncNames(d)
}
