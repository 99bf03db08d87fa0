//go:build unix && !solaris && !aix

package dumps

import (
	"os"
	"syscall"
)

// nonBlocking lets an opening never wait for somebody else.
const nonBlocking = syscall.O_NONBLOCK

// lock reports whether nobody else has a file; then its lock is there until it is closed. A file system without locks
// gives none, and the file is taken all the same.
func lock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != syscall.EWOULDBLOCK
}
