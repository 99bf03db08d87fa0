package bolt

import (
	"os"
	"syscall"
)

// openDirect opens a file for writes that pass the system's cache by, and makes a
// buffer for them. It returns nil where there are none.
func openDirect(path string, size int) (*os.File, []byte) {
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_DIRECT, 0)
	if err != nil {
		return nil, nil
	}
	// A map begins at a page.
	buffer, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, nil
	}
	return f, buffer
}

func closeDirect(f *os.File, buffer []byte) {
	_ = f.Close() // what it wrote is of no worth
	_ = syscall.Munmap(buffer)
}
