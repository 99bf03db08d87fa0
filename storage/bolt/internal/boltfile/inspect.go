package boltfile

import (
	"encoding/binary"
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
			in.FreePage, err = f.freePages(at, in.PageSize)
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
func (f *File) freePages(tx, pageSize int) (uint64, error) {
	c := &PageCheck{F: f, PageSize: pageSize, Used: NewBitmap(MetaPages)}
	_, freelist, err := c.Meta(uint64(tx))
	if err != nil || freelist == NoFreelist {
		return 0, err
	}
	var start [PageHeaderLen + 8]byte
	if _, err := f.Handle.ReadAt(start[:], int64(freelist)*int64(pageSize)); err != nil {
		return 0, fmt.Errorf("read the freelist of %s: %w", f.Name, err)
	}
	free := uint64(PageCount(start[:]))
	if free == ManyFree {
		free = binary.NativeEndian.Uint64(start[PageHeaderLen:])
	}
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
