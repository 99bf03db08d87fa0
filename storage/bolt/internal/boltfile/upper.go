package boltfile

import (
	"context"
	"encoding/binary"
	"fmt"
)

// maxGlances is how many pages are glanced at before a file is used: those of a file of a
// megabyte, and of a larger one the upper pages of its trees, which are few. All of them
// would make the time that opening takes grow with the log.
const maxGlances = 256

// checkUpper checks what every use of a file needs: its root, and the upper pages of its trees.
//
// The root's small buckets lie in its entries. bbolt copies such a bucket to the heap where it is not
// aligned, and an entry that lies outside of it becomes a pointer to nowhere: the garbage
// collector ends the process when it meets that, and nothing can catch it. Elsewhere entries
// point into the map, where a fault can be caught.
//
// No page may be referred to twice, by one below it for instance. bbolt would go down that
// circle for ever: by recursion, until the process ends for want of stack, which nothing can
// catch, or in a loop that takes all memory; and it goes down from pages that belong to no tree.
func (f *File) checkUpper() error {
	return f.walk(&walk{ctx: context.Background(), upper: true}, func(w *walk, root, _ uint64) error {
		err := w.down(root, nil, nil, 0)
		for i := 0; err == nil && i < min(len(w.next), maxGlances); i++ {
			err = w.glance(w.next[i])
		}
		return err
	})
}

// refer notes that an entry of a page refers to another, at which to glance.
func (w *walk) refer(id uint64, i int, below uint64) error {
	if below >= w.count {
		return nil // whoever needs it finds that it is not there
	}
	if w.used.has(below) {
		return w.faulty(id, "entry %d refers to page %d, to which another refers, too", i, below)
	}
	w.used.add(below)
	w.next = append(w.next, below)
	return nil
}

// glance looks at a page of a tree, and notes those below it. What else is wrong with a page, that it
// cannot be read too, is found by whoever needs it.
func (w *walk) glance(id uint64) error {
	page, err := w.readAt(id, 1, 0)
	if err != nil {
		return nil //nolint:nilerr // as said
	}
	flags := PageFlags(page)
	switch flags {
	case PageBranch, PageLeaf:
	case pageMeta, PageFreelist:
		// bbolt takes it for a branch, and what it refers to is anything.
		return w.faulty(id, "got flags %#x, want those of a branch or a leaf", flags)
	default:
		return nil
	}
	if err := w.checkRoom(id, page); err != nil || flags == PageLeaf {
		return err
	}
	for i := range min(PageCount(page), (len(page)-PageHeaderLen)/PageElementLen) {
		if err := w.refer(id, i, binary.NativeEndian.Uint64(page[elementAt(i)+8:])); err != nil {
			return err
		}
	}
	return nil
}

// checkRoom makes sure that a page of a file that will be written takes no more of those behind it for
// its own than its entries need, of which the last one ends last. Whoever writes it anew frees them all,
// though they are in use, or there are billions of them.
func (w *walk) checkRoom(id uint64, page []byte) error {
	if w.f.DB.IsReadOnly() {
		return nil
	}
	if err := w.checkOverflow(id, page); err != nil {
		return err
	}
	more, size := pageOverflow(page), uint64(w.pageSize)
	n := PageCount(page)
	if uint64(elementAt(n)) > (more+1)*size {
		return w.faulty(id, "%d pages belong to it, and it has %d entries", more, n)
	}
	end, err := w.end(id, page)
	if err == nil && more > (end-1)/size {
		err = w.faulty(id, "%d pages belong to it, and its entries end at byte %d", more, end)
	}
	return err
}

// end is where the last entry of a page ends.
func (w *walk) end(id uint64, page []byte) (uint64, error) {
	n := PageCount(page)
	if n == 0 {
		return PageHeaderLen, nil
	}
	at := elementAt(n - 1)
	var e [PageElementLen]byte
	if _, err := w.f.Handle.ReadAt(e[:], int64(id)*int64(w.pageSize)+int64(at)); err != nil {
		return 0, fmt.Errorf("read page %d of %s: %w", id, w.f.Name, err)
	}
	pos, key, value := element(PageFlags(page), e[:])
	return uint64(at) + pos + key + value, nil
}
