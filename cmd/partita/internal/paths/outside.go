// Package paths checks what flags name.
package paths

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/partita-go/partita/cmd/internal/cli"
)

// CheckOutside returns wrong usage if what a flag names would be made within a store, where it would be taken for a part of
// it, and copied and removed with it.
func CheckOutside(flag, path string) error {
	if path == "" || path == "-" {
		return nil
	}
	store, err := StoreOf(path, "")
	if err != nil {
		return err
	}
	if store != "" {
		return cli.WrongUsage("--%s: %s is within the store %s: want a place outside of it", flag, path, store)
	}
	return nil
}

// StoreOf returns the directory of the store that a path is within, "" if it is outside of all. Dir is taken for one also
// while there is no store in it yet, unless it is "".
func StoreOf(path, dir string) (store string, err error) {
	at, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	own, ownErr := os.Stat(dir)
	if target, err := filepath.EvalSymlinks(at); err == nil {
		at = target
	}
	for at != filepath.Dir(at) {
		at = filepath.Dir(at)
		// A link is followed: it may lead into a store.
		target, err := filepath.EvalSymlinks(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it will be made
		}
		if err != nil {
			return "", err
		}
		at = target
		if _, err := os.Lstat(filepath.Join(at, "log.db")); err == nil {
			return at, nil
		}
		if info, err := os.Stat(at); err == nil && ownErr == nil && os.SameFile(info, own) {
			return at, nil
		}
	}
	return "", nil
}
