package faulty

import "github.com/partita-go/partita/storage/bolt/internal/boltfile"

// Disk is the one that log.wal is on.
type Disk struct {
	*boltfile.Directory
	// Growth is a write that makes a file longer, or makes one: what fails there for want of space has written nothing.
	Growth Point
	// Header is a write to the start of a file that is there.
	Header Point
	// What fails before any other write has written nothing, or part of it; what fails behind it is one that was
	// written, and not synced.
	Before, After Point
	// Names is the sync of what the files are called.
	Names Point
}

// CreateSynced makes a file. One that cannot grow is there, and is returned with the error.
func (d *Disk) CreateSynced(name string, block []byte) (boltfile.Synced, error) {
	f, err := d.Directory.CreateSynced(name, block)
	if err != nil {
		return f, err
	}
	return &file{Synced: f, disk: d}, d.Growth.pass()
}

// Sync makes names durable.
func (d *Disk) Sync() error {
	if err := d.Names.pass(); err != nil {
		return err
	}
	return d.Directory.Sync()
}

type file struct {
	boltfile.Synced
	disk *Disk
}

func (f *file) WriteSynced(b []byte, at int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	before, after := &f.disk.Before, &f.disk.After
	switch {
	case at+int64(len(b)) > info.Size():
		before, after = &f.disk.Growth, new(Point)
	case at == 0:
		before, after = &f.disk.Header, new(Point)
	}
	if err := before.pass(); err != nil {
		return err
	}
	if err := f.Synced.WriteSynced(b, at); err != nil {
		return err
	}
	return after.pass()
}
