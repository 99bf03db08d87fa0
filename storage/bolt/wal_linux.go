package bolt

import (
	"errors"
	"os"
	"syscall"
)

// A write that is durable when it returns is one call instead of two.
const walFlags = os.O_WRONLY | os.O_CREATE | os.O_EXCL | syscall.O_DSYNC

// createSynced makes a file for writeSynced, and writes its first block. Its writes pass the
// system's cache by, where there are such writes: some file systems refuse the opening, some
// the writing, and leave an empty file. The file is nil if it could not be made.
func createSynced(path string, block []byte) (*os.File, error) {
	f, err := createWith(walFlags|syscall.O_DIRECT, path, block)
	if !errors.Is(err, syscall.EINVAL) {
		return f, err
	}
	if f != nil {
		_ = f.Close() // it is empty
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return createWith(walFlags, path, block)
}

func createWith(flags int, path string, block []byte) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	return f, writeSynced(f, block, 0)
}

// writeSynced writes b, and returns when it is durable.
func writeSynced(f *os.File, b []byte, at int64) error {
	_, err := f.WriteAt(b, at)
	return err
}
