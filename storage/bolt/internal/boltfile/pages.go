package boltfile

import "encoding/binary"

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
	noFreelist   = ^uint64(0)
)

// PageFlags returns the kind of a page.
func PageFlags(page []byte) uint16 { return binary.NativeEndian.Uint16(page[PageFlagsAt:]) }

// PageCount returns how many entries a page has.
func PageCount(page []byte) int { return int(binary.NativeEndian.Uint16(page[PageCountAt:])) }

// pageOverflow is how many pages behind a page belong to it.
func pageOverflow(page []byte) uint64 {
	return uint64(binary.NativeEndian.Uint32(page[PageOverflowAt:]))
}

// freeCount is how many pages a freelist says it has, and where their list begins.
func freeCount(page []byte) (n uint64, from int) {
	if n := PageCount(page); n != ManyFree {
		return uint64(n), PageHeaderLen
	}
	return binary.NativeEndian.Uint64(page[PageHeaderLen:]), PageHeaderLen + 8
}

// elementAt is where an entry of a page begins.
func elementAt(i int) int { return PageHeaderLen + i*PageElementLen }

// element says where the key of an entry begins, counted from the entry, and how long the key and
// the value behind it are.
func element(flags uint16, e []byte) (pos, key, value uint64) {
	u32 := func(at int) uint64 { return uint64(binary.NativeEndian.Uint32(e[at:])) }
	if flags == PageBranch {
		return u32(0), u32(4), 0
	}
	return u32(4), u32(8), u32(12)
}

// bitmap is a set of pages.
type bitmap []uint64

func newBitmap(n uint64) bitmap { return make(bitmap, n/64+1) }

func (b bitmap) has(n uint64) bool { return n/64 < uint64(len(b)) && b[n/64]&(1<<(n%64)) != 0 }
func (b bitmap) add(n uint64)      { b[n/64] |= 1 << (n % 64) }
