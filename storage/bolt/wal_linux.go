package bolt

import (
	"errors"
	"os"
	"syscall"
)

// A write that is durable when it returns is one call instead of two.
const walFlags = os.O_WRONLY | os.O_CREATE | os.O_EXCL | syscall.O_DSYNC

// createSynced makes a file for writeSynced. Its writes pass the system's cache by,
// where there are such writes.
func createSynced(path string) (*os.File, error) {
	f, err := os.OpenFile(path, walFlags|syscall.O_DIRECT, 0o600)
	if errors.Is(err, syscall.EINVAL) {
		return os.OpenFile(path, walFlags, 0o600)
	}
	return f, err
}

// writeSynced writes b, and returns when it is durable.
func writeSynced(f *os.File, b []byte, at int64) error {
	_, err := f.WriteAt(b, at)
	return err
}
