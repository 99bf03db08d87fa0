package boltfile

import (
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// FileInspection is about one file.
type FileInspection struct {
	Name string
	// Format is the file's format version.
	Format uint16
	// Size is in bytes. Pages are all that are in use or free; free ones are written again.
	Size            int64
	PageSize        int
	Pages, FreePage uint64
}

// Inspect tells about the file, which may be in use.
func (f *File) Inspect(r format.Role) (FileInspection, error) {
	in := FileInspection{Name: r.FileName(), Size: f.Size()}
	h, err := f.Header(r)
	if err != nil {
		return in, err
	}
	in.Format = h.Format
	for range overtaken {
		var at, now int
		err = f.View(func(tx *bbolt.Tx) (err error) {
			// Only in a transaction: the map may be made anew, or be gone, at any other time.
			in.PageSize = f.DB.Info().PageSize
			at, in.Pages = tx.ID(), uint64(tx.Size())/uint64(in.PageSize)
			in.FreePage, err = f.freePages(tx, in.PageSize)
			return err
		})
		if err == nil {
			return in, nil
		}
		if err := f.View(func(tx *bbolt.Tx) error { now = tx.ID(); return nil }); err != nil {
			return in, err
		}
		if now == at {
			break
		}
	}
	return in, err
}

// freePages returns how many pages are free, as the list says to which the transaction's
// meta page refers.
func (f *File) freePages(tx *bbolt.Tx, pageSize int) (uint64, error) {
	_, freelist, err := f.roots(tx)
	if err != nil || freelist == noFreelist {
		return 0, err
	}
	var start [PageHeaderLen + 8]byte
	if _, err := f.Handle.ReadAt(start[:], int64(freelist)*int64(pageSize)); err != nil {
		return 0, fmt.Errorf("read the freelist of %s: %w", f.Name, err)
	}
	free, _ := freeCount(start[:])
	return free, nil
}

// overtaken is how often an inspection begins anew because so many commits came between
// the beginning of its transaction and its look at the meta pages that none is left of it.
const overtaken = 100

// Size returns the length of the file in bytes, 0 if it cannot be told.
func (f *File) Size() int64 {
	info, err := f.Handle.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}
