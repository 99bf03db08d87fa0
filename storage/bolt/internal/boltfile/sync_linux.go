package boltfile

import (
	"errors"
	"os"
	"syscall"
)

// CreateSynced makes a file, which must not be there, and writes its first block.
// A write that is durable when it returns is one call instead of two. Writes pass the system's cache
// by, where there are such writes: some file systems refuse to be asked for them, some the
// writing. The file is nil if it could not be made.
func (d *Directory) CreateSynced(name string, block []byte) (Synced, error) {
	f, err := d.MakeFile(name, syscall.O_DSYNC)
	if err != nil {
		return nil, err
	}
	s := synced{f}
	direct := setDirect(f, true) == nil
	err = s.WriteSynced(block, 0)
	if direct && errors.Is(err, syscall.EINVAL) {
		if err = setDirect(f, false); err == nil {
			err = s.WriteSynced(block, 0)
		}
	}
	return s, err
}

// setDirect lets writes pass the system's cache by, or not. It is asked for when the file is there: a file
// system that refuses it leaves nothing behind that would have to be removed by its name.
func setDirect(f *os.File, direct bool) error {
	flags, err := fcntl(f, syscall.F_GETFL, 0)
	if err != nil {
		return err
	}
	flags &^= syscall.O_DIRECT
	if direct {
		flags |= syscall.O_DIRECT
	}
	_, err = fcntl(f, syscall.F_SETFL, flags)
	return err
}

func fcntl(f *os.File, command, value uintptr) (uintptr, error) {
	result, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), command, value)
	if errno != 0 {
		return 0, &os.PathError{Op: "fcntl", Path: f.Name(), Err: errno}
	}
	return result, nil
}

func (s synced) WriteSynced(b []byte, at int64) error {
	_, err := s.WriteAt(b, at)
	return err
}
