package boltfile

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
)

// maxTreePages is how many pages are read before a file is used: those of a file of a
// megabyte, and of a larger one the upper pages of its trees, which are few. All of them
// would make the time that opening takes grow with the log.
const maxTreePages = 256

// checkTrees makes sure that no page is referred to twice, by one below it for instance.
// bbolt would go down that circle for ever: by recursion, until the process ends for want of
// stack, which nothing can catch, or in a loop that takes all memory; and it goes down from
// pages that belong to no tree. In a file that will be
// written no page takes more of those behind it for its own than it fills, either: whoever
// writes it anew frees them all, though they are in use, or there are billions of them.
func (f *File) checkTrees() error {
	return f.View(func(tx *bbolt.Tx) error {
		size := f.DB.Info().PageSize
		d := descent{
			f: f, page: make([]byte, size), count: uint64(tx.Size()) / uint64(size), seen: make(map[uint64]bool), writable: !f.DB.IsReadOnly(),
		}
		top := uint64(tx.Cursor().Bucket().Root())
		d.queue, d.seen[top] = append(d.queue, top), true
		err := tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
			if root := uint64(b.Root()); root != 0 {
				return d.add(top, 0, root)
			}
			return nil
		})
		for i := 0; err == nil && i < min(len(d.queue), maxTreePages); i++ {
			err = d.visit(d.queue[i])
		}
		return err
	})
}

// descent goes down the trees of a file, level by level.
type descent struct {
	f    *File
	page []byte
	// count is how many pages there are.
	count uint64
	queue []uint64
	seen  map[uint64]bool
	// writable says that pages will be written anew.
	writable bool
}

// Add queues a page that an entry of another refers to.
func (d *descent) add(page uint64, entry int, below uint64) error {
	if d.seen[below] {
		return d.damaged(page, "entry %d refers to page %d, to which another refers, too", entry, below)
	}
	d.seen[below] = true
	d.queue = append(d.queue, below)
	return nil
}

func (d *descent) damaged(page uint64, format string, args ...any) error {
	return &storage.DamagedError{Where: fmt.Sprintf("file %s, page %d", d.f.Name, page), Cause: fmt.Errorf(format, args...)}
}

// visit looks at a page, and for those below it. What else is wrong with a page, that it
// cannot be read too, is found by who needs it.
func (d *descent) visit(page uint64) error {
	if page >= d.count {
		return nil
	}
	_, err := d.f.Handle.ReadAt(d.page, int64(page)*int64(len(d.page)))
	if err != nil {
		return nil //nolint:nilerr // as said
	}
	flags := PageFlags(d.page)
	switch flags {
	case PageBranch, PageLeaf:
	case pageMeta, PageFreelist:
		// bbolt takes it for a branch, and what it refers to is anything.
		return d.damaged(page, "got flags %#x, want those of a branch or a leaf", flags)
	default:
		return nil
	}
	if d.writable {
		if err := d.checkRoom(page); err != nil {
			return err
		}
	}
	if flags != PageBranch {
		return nil
	}
	for n := range min(PageCount(d.page), (len(d.page)-PageHeaderLen)/PageElementLen) {
		below := binary.NativeEndian.Uint64(d.page[PageHeaderLen+n*PageElementLen+8:])
		if err := d.add(page, n, below); err != nil {
			return err
		}
	}
	return nil
}

// checkRoom makes sure that all the pages that belong to one are there, and needed for its
// entries, of which the last one ends last.
func (d *descent) checkRoom(page uint64) error {
	more := pageOverflow(d.page)
	if more >= d.count-page {
		return d.damaged(page, "%d pages belong to it, the last one is %d", more, d.count-1)
	}
	size := uint64(len(d.page))
	if n := PageCount(d.page); PageHeaderLen+uint64(n)*PageElementLen > (more+1)*size {
		return d.damaged(page, "%d pages belong to it, and it has %d entries", more, n)
	}
	end, err := d.end(page)
	if err == nil && more > (end-1)/size {
		err = d.damaged(page, "%d pages belong to it, and its entries end at byte %d", more, end)
	}
	return err
}

// end is where the last entry of a page ends.
func (d *descent) end(page uint64) (end uint64, err error) {
	n := PageCount(d.page)
	if n == 0 {
		return PageHeaderLen, nil
	}
	end = PageHeaderLen + uint64(n-1)*PageElementLen
	var e [PageElementLen]byte
	if _, err := d.f.Handle.ReadAt(e[:], int64(page)*int64(len(d.page))+int64(end)); err != nil {
		return 0, fmt.Errorf("read page %d of %s: %w", page, d.f.Name, err)
	}
	lengths := e[:8]
	if PageFlags(d.page) == PageLeaf {
		lengths = e[4:]
	}
	for ; len(lengths) > 0; lengths = lengths[4:] {
		end += uint64(binary.NativeEndian.Uint32(lengths))
	}
	return end, nil
}
