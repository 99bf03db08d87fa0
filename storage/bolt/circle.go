package bolt

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
)

// maxCirclePages is how many pages are read to find circles: those of a file of a
// megabyte, and of a larger one the upper pages of its trees, which are few. All of them
// would make the time that opening takes grow with the log.
const maxCirclePages = 256

// checkCircles makes sure that no page refers to one above it. bbolt would go down the
// circle for ever: by recursion, until the process ends for want of stack, which nothing
// can catch, or in a loop that takes all memory.
func (f *file) checkCircles() error {
	return f.view(func(tx *bbolt.Tx) error {
		size := f.db.Info().PageSize
		d := descent{f: f, page: make([]byte, size), count: uint64(tx.Size()) / uint64(size)}
		err := tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
			if root := uint64(b.Root()); root != 0 {
				d.queue = append(d.queue, descended{page: root, parent: -1})
			}
			return nil
		})
		for i := 0; err == nil && i < min(len(d.queue), maxCirclePages); i++ {
			err = d.visit(i)
		}
		return err
	})
}

// descent goes down the trees of a file, level by level.
type descent struct {
	f    *file
	page []byte
	// count is how many pages there are.
	count uint64
	queue []descended
}

// descended is a page, and where in the queue the one is that refers to it.
type descended struct {
	page   uint64
	parent int
}

// visit looks at the pages below one. What else is wrong with a page, that it cannot be
// read too, is found by who needs it.
func (d *descent) visit(i int) error {
	id := d.queue[i].page
	if id >= d.count {
		return nil
	}
	_, err := d.f.handle.ReadAt(d.page, int64(id)*int64(len(d.page)))
	if err != nil || pageFlags(d.page) != pageBranch {
		return nil //nolint:nilerr // as said
	}
	for n := range min(pageCount(d.page), (len(d.page)-pageHeaderLen)/pageElementLen) {
		below := binary.NativeEndian.Uint64(d.page[pageHeaderLen+n*pageElementLen+8:])
		for above := i; above >= 0; above = d.queue[above].parent {
			if d.queue[above].page == below {
				return &storage.DamagedError{
					Where: fmt.Sprintf("file %s, page %d", d.f.name, id), Cause: fmt.Errorf("entry %d refers to page %d, which lies above it", n, below),
				}
			}
		}
		d.queue = append(d.queue, descended{page: below, parent: i})
	}
	return nil
}
