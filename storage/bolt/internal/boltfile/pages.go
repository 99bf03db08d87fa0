package boltfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/bbolt"
)

// A file's pages are checked without bbolt: its own check runs in a goroutine where a
// memory fault cannot be caught, and it does not end where pages refer to each other in
// a circle. What is read here are the bytes of the file, never memory that maps it.
//
//	page      id 8, flags 2, count 2, overflow 4, elements
//	branch    elements { pos 4, key length 4, page 8 }, keys
//	leaf      elements { flags 4, pos 4, key length 4, value length 4 }, keys and values
//	freelist  pages { 8 }; a count of 65535 says that the first of them is the count
//	bucket    root page 8, sequence 8, and a leaf page if the root page is 0
//
// A pos is counted from its element. Integers are in the machine's byte order.
const (
	PageHeaderLen  = 16
	PageElementLen = 16
	bucketValueLen = 16

	PageFlagsAt    = 8
	PageCountAt    = 10
	PageOverflowAt = 12

	PageBranch   = 0x01
	PageLeaf     = 0x02
	pageMeta     = 0x04
	PageFreelist = 0x10
	leafBucket   = 0x01
	ManyFree     = 0xFFFF
	NoFreelist   = ^uint64(0)

	metaRootAt     = 32
	MetaFreelistAt = 48
	metaTxAt       = 64
)

// maxPageDepth is far above what any tree needs.
const maxPageDepth = 128

// PageCheck is a check of a file's pages under way.
type PageCheck struct {
	ctx      context.Context
	F        *File
	PageSize int
	// count is how many pages there are, in use or free.
	count      uint64
	Used, free Bitmap
	// pages are what is read, by depth: a page's keys bound those of the pages below.
	pages [maxPageDepth][]byte
	done  uint64
	// inlineOnly leaves out the buckets that have pages of their own.
	inlineOnly bool

	fault    func(where, text string)
	progress func(done, total uint64)
}

// CheckPages checks that the pages of a file make sound trees, that none is used twice or
// used and free, and that none is lost. Faults are told; an error says that it could not
// look.
func (f *File) CheckPages(ctx context.Context, fault func(where, text string), progress func(done, total uint64)) error {
	return f.View(func(tx *bbolt.Tx) error {
		c := f.NewPageCheck(ctx, tx, fault, progress)
		root, freelist, err := c.Meta(uint64(tx.ID()))
		if err != nil {
			return err
		}
		err = c.readFreelist(freelist)
		if err == nil || errors.Is(err, errPage) {
			err = c.walk(root, nil, nil, 0)
		}
		if err != nil && !errors.Is(err, errPage) {
			return err
		}
		c.checkLost(freelist)
		return nil
	})
}

// NewPageCheck returns a check of the file's pages as a transaction sees them.
func (f *File) NewPageCheck(ctx context.Context, tx *bbolt.Tx, fault func(where, text string), progress func(done, total uint64)) *PageCheck {
	size := f.DB.Info().PageSize
	c := &PageCheck{ctx: ctx, F: f, PageSize: size, count: uint64(tx.Size()) / uint64(size), fault: fault, progress: progress}
	c.Used, c.free = NewBitmap(c.count), NewBitmap(c.count)
	return c
}

// Meta returns what the transaction's meta page refers to.
func (c *PageCheck) Meta(tx uint64) (root, freelist uint64, err error) {
	for page := range MetaPages {
		var meta [MetaEnd]byte
		if _, err := c.F.Handle.ReadAt(meta[:], int64(page)*int64(c.PageSize)); err != nil {
			return 0, 0, err
		}
		if ValidMeta(meta[:], c.PageSize) == nil && binary.NativeEndian.Uint64(meta[metaTxAt:]) == tx {
			c.Used.add(0)
			c.Used.add(1)
			return binary.NativeEndian.Uint64(meta[metaRootAt:]), binary.NativeEndian.Uint64(meta[MetaFreelistAt:]), nil
		}
	}
	return 0, 0, c.F.damaged(errors.New("no meta page is of the last commit"))
}

// faulty tells a fault of a page.
func (c *PageCheck) faulty(id uint64, format string, args ...any) error {
	c.fault(fmt.Sprintf("file %s, page %d", c.F.Name, id), fmt.Sprintf(format, args...))
	return errPage
}

// read reads a page and those that belong to it, and notes that they are used.
func (c *PageCheck) read(id uint64, depth int) ([]byte, error) {
	page, err := c.first(id, depth)
	if err != nil {
		return nil, err
	}
	return c.whole(id, page, depth)
}

// first reads a page without those that belong to it.
func (c *PageCheck) first(id uint64, depth int) ([]byte, error) {
	if id < MetaPages || id >= c.count {
		return nil, c.faulty(id, "it is used, and there are pages 2 to %d", c.count-1)
	}
	if depth == maxPageDepth {
		return nil, c.faulty(id, "it lies more than %d pages deep", maxPageDepth)
	}
	page, err := c.readAt(id, 1, depth)
	if err != nil {
		return nil, err
	}
	if got := binary.NativeEndian.Uint64(page); got != id {
		return nil, c.faulty(id, "it says that it is page %d", got)
	}
	if more := pageOverflow(page); more >= c.count-id {
		return nil, c.faulty(id, "%d pages belong to it, the last one is %d", more, c.count-1)
	}
	return page, nil
}

func (c *PageCheck) whole(id uint64, page []byte, depth int) ([]byte, error) {
	more := pageOverflow(page)
	for n := id; n <= id+more; n++ {
		if c.Used.has(n) {
			return nil, c.faulty(n, "it is used twice")
		}
		if c.free.has(n) {
			_ = c.faulty(n, "it is used and free")
		}
		c.Used.add(n)
	}
	if more == 0 {
		return page, nil
	}
	return c.readAt(id, more+1, depth)
}

func (c *PageCheck) readAt(id, pages uint64, depth int) ([]byte, error) {
	if c.done++; c.done%1024 == 0 {
		if err := c.ctx.Err(); err != nil {
			return nil, err
		}
		c.progress(min(c.done, c.count), c.count)
	}
	n := int(pages) * c.PageSize
	if cap(c.pages[depth]) < n {
		c.pages[depth] = make([]byte, n)
	}
	page := c.pages[depth][:n]
	_, err := c.F.Handle.ReadAt(page, int64(id)*int64(c.PageSize))
	switch {
	case errors.Is(err, io.EOF):
		return nil, c.faulty(id, "it lies behind the end of the file")
	case err != nil:
		return nil, fmt.Errorf("read page %d of %s: %w", id, c.F.Name, err)
	}
	return page, nil
}

func (c *PageCheck) readFreelist(id uint64) error {
	if id == NoFreelist {
		return nil
	}
	page, err := c.first(id, 0)
	if err != nil {
		return err
	}
	if flags := PageFlags(page); flags != PageFreelist {
		return c.faulty(id, "got flags %#x, want those of a freelist", flags)
	}
	n, from := uint64(PageCount(page)), PageHeaderLen
	if n == ManyFree {
		n, from = binary.NativeEndian.Uint64(page[from:]), from+8
	}
	// What the pages say may take more memory than there is: it is believed when it fits.
	pages := pageOverflow(page) + 1
	if room := (pages*uint64(c.PageSize) - uint64(from)) / 8; n > room {
		return c.faulty(id, "the freelist has %d pages, there is room for %d", n, room)
	}
	// bbolt takes room for the pages that are free before it takes some of them for the list.
	if most := (PageHeaderLen+8*(n+pages+1))/uint64(c.PageSize) + 1; pages > most {
		return c.faulty(id, "the freelist has %d pages, and takes %d, want at most %d", n, pages, most)
	}
	if page, err = c.whole(id, page, 0); err != nil {
		return err
	}
	list := page[from:]
	for i := range n {
		switch free := binary.NativeEndian.Uint64(list[8*i:]); {
		case free < MetaPages || free >= c.count:
			_ = c.faulty(id, "page %d is in the freelist, there are pages 2 to %d", free, c.count-1)
		case c.free.has(free):
			_ = c.faulty(free, "it is in the freelist twice")
		default:
			c.free.add(free)
		}
	}
	return nil
}

// PageFlags returns the kind of a page.
func PageFlags(page []byte) uint16 { return binary.NativeEndian.Uint16(page[PageFlagsAt:]) }

// PageCount returns how many entries a page has.
func PageCount(page []byte) int { return int(binary.NativeEndian.Uint16(page[PageCountAt:])) }

// pageOverflow is how many pages behind a page belong to it.
func pageOverflow(page []byte) uint64 {
	return uint64(binary.NativeEndian.Uint32(page[PageOverflowAt:]))
}

// walk checks a page whose first key must be least, and whose keys must lie before end, and
// all pages below it. Nil is no bound.
func (c *PageCheck) walk(id uint64, least, end []byte, depth int) error {
	page, err := c.read(id, depth)
	if err != nil {
		return err
	}
	elements := page[PageHeaderLen:]
	if n := PageCount(page); n > len(elements)/PageElementLen {
		return c.faulty(id, "it has %d entries, there is room for %d", n, len(elements)/PageElementLen)
	}
	switch flags := PageFlags(page); flags {
	case PageBranch:
		return c.branch(id, page, least, end, depth)
	case PageLeaf:
		return c.leaf(id, page, least, end, depth)
	default:
		return c.faulty(id, "got flags %#x, want those of a branch or a leaf", flags)
	}
}

// branch checks a page that refers to others. A fault of one does not keep the others
// from being checked.
func (c *PageCheck) branch(id uint64, page, least, end []byte, depth int) error {
	n := PageCount(page)
	if n == 0 {
		return c.faulty(id, "it refers to no page")
	}
	for i := range n {
		key, below, err := c.branchElement(id, page, i)
		if err != nil {
			return err
		}
		if err := c.checkKey(id, i, key, least, end); err != nil {
			return err
		}
		next := end
		if i+1 < n {
			if next, _, err = c.branchElement(id, page, i+1); err != nil {
				return err
			}
		}
		if err := c.walk(below, key, next, depth+1); err != nil && !errors.Is(err, errPage) {
			return err
		}
		least = key
	}
	return nil
}

func (c *PageCheck) branchElement(id uint64, page []byte, i int) (key []byte, below uint64, err error) {
	at := PageHeaderLen + i*PageElementLen
	e := page[at:]
	pos, length := uint64(binary.NativeEndian.Uint32(e)), uint64(binary.NativeEndian.Uint32(e[4:]))
	if begin := uint64(at) + pos; begin+length > uint64(len(page)) {
		return nil, 0, c.faulty(id, "entry %d lies at bytes %d to %d of %d", i, begin, begin+length, len(page))
	}
	return e[pos : pos+length : pos+length], binary.NativeEndian.Uint64(e[8:]), nil
}

// checkKey makes sure that keys go up and lie within the bounds. least is the key before;
// for the first one it is what the page above has. Where they differ bbolt reads what is
// right, and its next write below leaves pages behind that are used and free.
func (c *PageCheck) checkKey(id uint64, i int, key, least, end []byte) error {
	order := bytes.Compare(key, least)
	switch {
	case i == 0 && least != nil && order != 0:
		return c.faulty(id, "key 0 is %x, the page above has %x", key, least)
	case i > 0 && order <= 0:
		return c.faulty(id, "key %d is %x, want one behind %x", i, key, least)
	case end != nil && bytes.Compare(key, end) >= 0:
		return c.faulty(id, "key %d is %x, want one before %x", i, key, end)
	}
	return nil
}

func (c *PageCheck) leaf(id uint64, page, least, end []byte, depth int) error {
	for i := range PageCount(page) {
		at := PageHeaderLen + i*PageElementLen
		e := page[at:]
		flags, pos := binary.NativeEndian.Uint32(e), uint64(binary.NativeEndian.Uint32(e[4:]))
		keyLen, valueLen := uint64(binary.NativeEndian.Uint32(e[8:])), uint64(binary.NativeEndian.Uint32(e[12:]))
		if begin := uint64(at) + pos; begin+keyLen+valueLen > uint64(len(page)) {
			return c.faulty(id, "entry %d lies at bytes %d to %d of %d", i, begin, begin+keyLen+valueLen, len(page))
		}
		key := e[pos : pos+keyLen : pos+keyLen]
		if err := c.checkKey(id, i, key, least, end); err != nil {
			return err
		}
		least = key
		switch flags {
		case 0:
		case leafBucket:
			if err := c.bucket(id, key, e[pos+keyLen:pos+keyLen+valueLen], depth); err != nil {
				return err
			}
		default:
			return c.faulty(id, "entry %d has flags %#x", i, flags)
		}
	}
	return nil
}

// bucket checks the pages of a bucket. One without a root page lies in the entry itself.
func (c *PageCheck) bucket(id uint64, name, value []byte, depth int) error {
	if len(value) < bucketValueLen {
		return c.faulty(id, "bucket %q has %d bytes, want %d", name, len(value), bucketValueLen)
	}
	root := binary.NativeEndian.Uint64(value)
	if root == 0 {
		page := value[bucketValueLen:]
		if len(page) < PageHeaderLen || PageFlags(page) != PageLeaf || PageCount(page) > (len(page)-PageHeaderLen)/PageElementLen {
			return c.faulty(id, "bucket %q is not a leaf", name)
		}
		return c.leaf(id, page, nil, nil, depth)
	}
	if c.inlineOnly {
		return nil
	}
	if err := c.walk(root, nil, nil, depth+1); err != nil && !errors.Is(err, errPage) {
		return err
	}
	return nil
}

// checkLost names the pages that are neither used nor free. Without a freelist nobody
// knows which are free.
func (c *PageCheck) checkLost(freelist uint64) {
	if freelist == NoFreelist {
		return
	}
	for id := range c.count {
		if !c.Used.has(id) && !c.free.has(id) {
			_ = c.faulty(id, "it is neither used nor free")
		}
	}
	c.progress(c.count, c.count)
}

// Bitmap is a set of pages.
type Bitmap []uint64

// NewBitmap returns an empty set of so many pages.
func NewBitmap(n uint64) Bitmap { return make(Bitmap, n/64+1) }

func (b Bitmap) has(n uint64) bool { return b[n/64]&(1<<(n%64)) != 0 }
func (b Bitmap) add(n uint64)      { b[n/64] |= 1 << (n % 64) }
