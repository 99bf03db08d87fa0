package boltfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
)

// maxPageDepth is far above what any tree needs.
const maxPageDepth = 128

// walk goes through the pages of a file. It goes down a tree from page to page, and looks at all of
// them; or it glances at the upper ones of many trees, level by level.
type walk struct {
	ctx      context.Context
	f        *File
	pageSize int
	// count is how many pages there are, in use or free.
	count      uint64
	used, free bitmap
	// pages are what is read, by depth: a page's keys bound those of the pages below.
	pages [maxPageDepth][]byte
	done  uint64
	// upper is set where a glance at the buckets that have pages of their own is enough. next are the pages to
	// glance at.
	upper bool
	next  []uint64

	// fault is told what is wrong. If it is nil, the first fault ends the walk.
	fault    func(where, text string)
	progress func(done, total uint64)
}

// CheckPages checks that the pages of a file make sound trees, that none is used twice or
// used and free, and that none is lost. Faults are told, and an error says that it could not
// look. If fault is nil, the first fault is the error.
func (f *File) CheckPages(ctx context.Context, fault func(where, text string), progress func(done, total uint64)) error {
	return f.walk(&walk{ctx: ctx, fault: fault, progress: progress}, func(w *walk, root, freelist uint64) error {
		err := w.told(w.readFreelist(freelist))
		if err == nil {
			err = w.told(w.down(root, nil, nil, 0))
		}
		if err == nil {
			err = w.checkLost(freelist)
		}
		return err
	})
}

// walk goes through the pages as the last commit left them.
func (f *File) walk(w *walk, from func(w *walk, root, freelist uint64) error) error {
	return f.View(func(tx *bbolt.Tx) error {
		w.f, w.pageSize = f, f.DB.Info().PageSize
		w.count = uint64(tx.Size()) / uint64(w.pageSize)
		w.used = newBitmap(w.count)
		root, freelist, err := f.roots(tx)
		if err != nil {
			return err
		}
		return from(w, root, freelist)
	})
}

// faulty is a fault of a page. It ends the walk of that page and those below it.
func (w *walk) faulty(id uint64, format string, args ...any) error {
	return &storage.DamagedError{Where: fmt.Sprintf("file %s, page %d", w.f.Name, id), Cause: fmt.Errorf(format, args...)}
}

// told tells a fault, after which the walk goes on. What it returns ends the walk.
func (w *walk) told(err error) error {
	damage, ok := errors.AsType[*storage.DamagedError](err)
	if !ok || w.fault == nil {
		return err
	}
	w.fault(damage.Where, damage.Cause.Error())
	return nil
}

// first reads a page without those that belong to it.
func (w *walk) first(id uint64, depth int) ([]byte, error) {
	if id < MetaPages || id >= w.count {
		return nil, w.faulty(id, "it is used, and there are pages 2 to %d", w.count-1)
	}
	if depth == maxPageDepth {
		return nil, w.faulty(id, "it lies more than %d pages deep", maxPageDepth)
	}
	page, err := w.readAt(id, 1, depth)
	if err != nil {
		return nil, err
	}
	if got := binary.NativeEndian.Uint64(page); got != id {
		return nil, w.faulty(id, "it says that it is page %d", got)
	}
	return page, w.checkOverflow(id, page)
}

// checkOverflow makes sure that all the pages that belong to one are there.
func (w *walk) checkOverflow(id uint64, page []byte) error {
	if more := pageOverflow(page); more >= w.count-id {
		return w.faulty(id, "%d pages belong to it, the last one is %d", more, w.count-1)
	}
	return nil
}

// whole reads a page with those that belong to it, and notes that they are used.
func (w *walk) whole(id uint64, page []byte, depth int) ([]byte, error) {
	more := pageOverflow(page)
	for n := id; n <= id+more; n++ {
		if w.used.has(n) {
			return nil, w.faulty(n, "it is used twice")
		}
		if w.free.has(n) {
			if err := w.told(w.faulty(n, "it is used and free")); err != nil {
				return nil, err
			}
		}
		w.used.add(n)
	}
	if more == 0 {
		return page, nil
	}
	return w.readAt(id, more+1, depth)
}

func (w *walk) readAt(id, pages uint64, depth int) ([]byte, error) {
	if w.done++; w.done%1024 == 0 {
		if err := w.ctx.Err(); err != nil {
			return nil, err
		}
		w.progressed(min(w.done, w.count))
	}
	n := int(pages) * w.pageSize
	if cap(w.pages[depth]) < n {
		w.pages[depth] = make([]byte, n)
	}
	page := w.pages[depth][:n]
	_, err := w.f.Handle.ReadAt(page, int64(id)*int64(w.pageSize))
	switch {
	case errors.Is(err, io.EOF):
		return nil, w.faulty(id, "it lies behind the end of the file")
	case err != nil:
		return nil, fmt.Errorf("read page %d of %s: %w", id, w.f.Name, err)
	}
	return page, nil
}

func (w *walk) progressed(done uint64) {
	if w.progress != nil {
		w.progress(done, w.count)
	}
}
