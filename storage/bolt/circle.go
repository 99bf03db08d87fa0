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

// checkCircles makes sure that no page is referred to twice, by one below it for instance.
// bbolt would go down that circle for ever: by recursion, until the process ends for want of
// stack, which nothing can catch, or in a loop that takes all memory.
func (f *file) checkCircles() error {
	return f.view(func(tx *bbolt.Tx) error {
		size := f.db.Info().PageSize
		d := descent{f: f, page: make([]byte, size), count: uint64(tx.Size()) / uint64(size), seen: make(map[uint64]bool)}
		err := tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
			if root := uint64(b.Root()); root != 0 {
				return d.add(uint64(tx.Cursor().Bucket().Root()), 0, root)
			}
			return nil
		})
		for i := 0; err == nil && i < min(len(d.queue), maxCirclePages); i++ {
			err = d.visit(d.queue[i])
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
	queue []uint64
	seen  map[uint64]bool
}

// add queues a page that an entry of another refers to.
func (d *descent) add(page uint64, entry int, below uint64) error {
	if d.seen[below] {
		return &storage.DamagedError{
			Where: fmt.Sprintf("file %s, page %d", d.f.name, page), Cause: fmt.Errorf("entry %d refers to page %d, to which another refers, too", entry, below),
		}
	}
	d.seen[below] = true
	d.queue = append(d.queue, below)
	return nil
}

// visit looks at the pages below one. What else is wrong with a page, that it cannot be
// read too, is found by who needs it.
func (d *descent) visit(page uint64) error {
	if page >= d.count {
		return nil
	}
	_, err := d.f.handle.ReadAt(d.page, int64(page)*int64(len(d.page)))
	if err != nil || pageFlags(d.page) != pageBranch {
		return nil //nolint:nilerr // as said
	}
	for n := range min(pageCount(d.page), (len(d.page)-pageHeaderLen)/pageElementLen) {
		below := binary.NativeEndian.Uint64(d.page[pageHeaderLen+n*pageElementLen+8:])
		if err := d.add(page, n, below); err != nil {
			return err
		}
	}
	return nil
}
