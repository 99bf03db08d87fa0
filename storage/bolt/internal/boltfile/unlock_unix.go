//go:build unix && !aix && !solaris

package boltfile

import (
	"os"
	"syscall"
)

// unlock releases bbolt's lock of a file. Closing the file does not while it is mapped.
func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
