package boltfile

import (
	"context"
	"encoding/binary"
)

// CheckFreelist checks the list of free pages of a file that will be written. The next write
// takes pages from there, and frees those of the list itself; and bbolt takes as much memory
// as the list says, before anything else can look at it: where there is not so much, the
// process ends, and nothing can catch that.
func (f *File) CheckFreelist() error {
	return f.walk(&walk{ctx: context.Background()}, func(w *walk, _, freelist uint64) error { return w.readFreelist(freelist) })
}

func (w *walk) readFreelist(id uint64) error {
	if id == noFreelist {
		return nil
	}
	page, err := w.first(id, 0)
	if err != nil {
		return err
	}
	if flags := PageFlags(page); flags != PageFreelist {
		return w.faulty(id, "got flags %#x, want those of a freelist", flags)
	}
	n, from := freeCount(page)
	// What the pages say may take more memory than there is: it is believed when it fits.
	pages := pageOverflow(page) + 1
	if room := (pages*uint64(w.pageSize) - uint64(from)) / 8; n > room {
		return w.faulty(id, "the freelist has %d pages, there is room for %d", n, room)
	}
	// bbolt takes room for the pages that are free before it takes some of them for the list.
	if most := (PageHeaderLen+8*(n+pages+1))/uint64(w.pageSize) + 1; pages > most {
		return w.faulty(id, "the freelist has %d pages, and takes %d, want at most %d", n, pages, most)
	}
	if page, err = w.whole(id, page, 0); err != nil {
		return err
	}
	w.free = newBitmap(w.count)
	for list := page[from : uint64(from)+8*n]; len(list) > 0 && err == nil; list = list[8:] {
		err = w.told(w.addFree(id, binary.NativeEndian.Uint64(list)))
	}
	return err
}

// addFree notes that the freelist has a page.
func (w *walk) addFree(list, id uint64) error {
	switch {
	case id < MetaPages || id >= w.count:
		return w.faulty(list, "page %d is in the freelist, there are pages 2 to %d", id, w.count-1)
	case w.free.has(id):
		return w.faulty(id, "it is in the freelist twice")
	}
	w.free.add(id)
	return nil
}

// checkLost names the pages that are neither used nor free. Without a freelist nobody
// knows which are free.
func (w *walk) checkLost(freelist uint64) error {
	if freelist == noFreelist {
		return nil
	}
	for id := uint64(MetaPages); id < w.count; id++ {
		if !w.used.has(id) && !w.free.has(id) {
			if err := w.told(w.faulty(id, "it is neither used nor free")); err != nil {
				return err
			}
		}
	}
	w.progressed(w.count)
	return nil
}
