package boltfile

import (
	"os"
	"sync"
)

// held are the files that this process has open, so that whoever meets a lock can be told whose it is: the lock does
// not say.
var held = struct {
	mu    sync.Mutex
	files map[*File]os.FileInfo
}{files: make(map[*File]os.FileInfo)}

// hold notes that a file is open. One that cannot be asked is not noted.
func hold(f *File) {
	info, err := f.Handle.Stat()
	if err != nil {
		return
	}
	held.mu.Lock()
	defer held.mu.Unlock()
	held.files[f] = info
}

func letGo(f *File) {
	held.mu.Lock()
	defer held.mu.Unlock()
	delete(held.files, f)
}

// holder says who has a file open that is locked.
func holder(d *Directory, name string) string {
	there, err := d.Stat(name)
	held.mu.Lock()
	defer held.mu.Unlock()
	for _, info := range held.files {
		if err == nil && os.SameFile(there, info) {
			return "by this process"
		}
	}
	return "by another process"
}
