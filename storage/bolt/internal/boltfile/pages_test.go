package boltfile_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// pages is a file's content, with some of its pages.
type pages struct {
	content    []byte
	size       int
	root, leaf int
	freelist   int
	// count is how many pages there are, in use or free.
	count int
}

func (p *pages) at(page int) []byte { return p.content[page*p.size:] }

// readPages reads a file that was made, and finds the log's root and first leaf in it.
func readPages(t *testing.T, path string) *pages {
	t.Helper()
	p := &pages{content: read(t, path)}
	f, err := open(t, path, &bbolt.Options{ReadOnly: true})
	expect.NoError(t, err)
	expect.NoError(t, f.View(func(tx *bbolt.Tx) error {
		p.size = tx.DB().Info().PageSize
		p.count = int(tx.Size()) / p.size
		p.root = int(tx.Bucket(format.BucketLog).RootPage())
		p.freelist = int(binary.NativeEndian.Uint64(p.at(tx.ID() % boltfile.MetaPages)[boltfile.MetaFreelistAt:]))
		return nil
	}))
	expect.NoError(t, f.Close())
	p.leaf = p.root
	for boltfile.PageFlags(p.at(p.leaf)) == boltfile.PageBranch {
		p.leaf = p.below(p.leaf, 0)
	}
	return p
}

// below is the page to which an entry of another refers.
func (p *pages) below(page, entry int) int {
	return int(binary.NativeEndian.Uint64(p.entry(page, entry)[8:]))
}

// refer lets an entry of a page refer to another page.
func (p *pages) refer(page, entry, to int) {
	binary.NativeEndian.PutUint64(p.entry(page, entry)[8:], uint64(to))
}

func (p *pages) entry(page, entry int) []byte {
	return p.at(page)[boltfile.PageHeaderLen+entry*boltfile.PageElementLen:]
}

// A fault of a page is told, and is an error where nobody is told.
func TestCheckPages(t *testing.T) {
	path := made(t, 200)
	sound := read(t, path)
	root := func(p *pages) int { return p.root }
	leaf := func(p *pages) int { return p.leaf }
	freelist := func(p *pages) int { return p.freelist }
	free := func(p *pages) int { return int(binary.NativeEndian.Uint64(p.at(p.freelist)[boltfile.PageHeaderLen:])) }
	for _, tt := range []struct {
		name string
		page func(*pages) int
		do   func(p *pages, page []byte)
		want string
	}{
		{"a page is another one", leaf, func(_ *pages, page []byte) { binary.NativeEndian.PutUint64(page, 99) }, "it says that it is page 99"},
		{"keys are out of order", leaf, func(_ *pages, page []byte) {
			first, second := elementKey(page, 1), elementKey(page, 2)
			for i := range first {
				first[i], second[i] = second[i], first[i]
			}
		}, "want one behind"},
		{"a key above is a smaller one", leaf, func(p *pages, _ []byte) {
			above := p.at(p.root)[boltfile.PageHeaderLen:]
			key := above[binary.NativeEndian.Uint32(above):][:binary.NativeEndian.Uint32(above[4:])]
			i := len(key) - 1
			for key[i] == 0 {
				i--
			}
			key[i]--
		}, "the page above has"},
		{"a key belongs to the next page", leaf, func(_ *pages, page []byte) {
			last := elementKey(page, boltfile.PageCount(page)-1)
			last[0] = 0xff
		}, "want one before"},
		{"an entry lies outside", leaf, func(_ *pages, page []byte) { binary.NativeEndian.PutUint32(page[boltfile.PageHeaderLen+8:], 1<<30) }, "entry 0 lies at bytes"},
		{"an entry of no kind", leaf, func(_ *pages, page []byte) { binary.NativeEndian.PutUint32(page[boltfile.PageHeaderLen:], 8) }, "entry 0 has flags 0x8"},
		{"too many entries", leaf, func(_ *pages, page []byte) { binary.NativeEndian.PutUint16(page[boltfile.PageCountAt:], 60_000) }, "it has 60000 entries"},
		{"a page of no kind", leaf, func(_ *pages, page []byte) { binary.NativeEndian.PutUint16(page[boltfile.PageFlagsAt:], 0) }, "got flags 0x0"},
		{"a page goes on behind the end", leaf, func(_ *pages, page []byte) { binary.NativeEndian.PutUint32(page[boltfile.PageOverflowAt:], 1<<20) }, "pages belong to it"},
		{"a page goes on right behind the end", leaf, func(p *pages, page []byte) {
			binary.NativeEndian.PutUint32(page[boltfile.PageOverflowAt:], uint32(p.count-p.leaf))
		}, "pages belong to it"},
		{"a key above is a larger one", leaf, func(p *pages, _ []byte) {
			above := p.entry(p.root, 0)
			above[binary.NativeEndian.Uint32(above)+7]++
		}, "the page above has"},
		{"a page is free twice", free, func(p *pages, _ []byte) {
			list := p.at(p.freelist)[boltfile.PageHeaderLen:]
			copy(list[8:16], list)
		}, "it is in the freelist twice"},
		{"a freelist takes too many pages", freelist, func(_ *pages, page []byte) {
			binary.NativeEndian.PutUint32(page[boltfile.PageOverflowAt:], 1)
		}, "and takes 2, want at most 1"},
		{"pages in a circle", root, func(p *pages, page []byte) {
			p.refer(p.root, 0, p.root)
		}, "it is used twice"},
		{"a page that is not there", func(*pages) int { return 1 << 20 }, func(p *pages, _ []byte) {
			p.refer(p.root, 0, 1<<20)
		}, "it is used, and there are pages 2 to"},
		{"no entry", root, func(_ *pages, page []byte) { binary.NativeEndian.PutUint16(page[boltfile.PageCountAt:], 0) }, "it refers to no page"},
		{"an entry of a branch lies outside", root, func(_ *pages, page []byte) { binary.NativeEndian.PutUint32(page[boltfile.PageHeaderLen:], 1<<30) }, "entry 0 lies at bytes"},
		{"a page is used and free", leaf, func(p *pages, _ []byte) {
			binary.NativeEndian.PutUint64(p.at(p.freelist)[boltfile.PageHeaderLen:], uint64(p.leaf))
		}, "it is used and free"},
		{"a page that is not there is free", freelist, func(_ *pages, page []byte) {
			binary.NativeEndian.PutUint64(page[boltfile.PageHeaderLen:], 1<<20)
		}, "is in the freelist, there are pages 2 to"},
		{"a freelist that is too long", freelist, func(_ *pages, page []byte) { binary.NativeEndian.PutUint16(page[boltfile.PageCountAt:], 60_000) }, "the freelist has 60000 pages"},
		{"no freelist", freelist, func(_ *pages, page []byte) {
			binary.NativeEndian.PutUint16(page[boltfile.PageFlagsAt:], boltfile.PageLeaf)
		}, "want those of a freelist"},
		{"a page is lost", free, func(p *pages, _ []byte) {
			list := p.at(p.freelist)
			n := boltfile.PageCount(list)
			copy(list[boltfile.PageHeaderLen:], list[boltfile.PageHeaderLen+8:boltfile.PageHeaderLen+8*n])
			binary.NativeEndian.PutUint16(list[boltfile.PageCountAt:], uint16(n-1))
		}, "it is neither used nor free"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			write(t, path, sound)
			p := readPages(t, path)
			page := tt.page(p)
			tt.do(p, p.content[min(page*p.size, len(p.content)):])
			write(t, path, p.content)
			f := opened(t, path, &bbolt.Options{ReadOnly: true})
			at, found, told := fmt.Sprintf("file %s, page %d", path, page), false, ""
			expect.NoError(t, f.CheckPages(t.Context(), func(where, text string) {
				found = found || where == at && strings.Contains(text, tt.want)
				told += where + ": " + text + "\n"
			}, nil))
			if !found {
				t.Errorf("want the fault %q at %s, got %s", tt.want, at, told)
			}
			var first *storage.DamagedError
			if err := f.CheckPages(t.Context(), nil, nil); !errors.As(err, &first) || !strings.HasPrefix(told, first.Where+": "+first.Cause.Error()+"\n") {
				t.Errorf("got %v, want the first of %s", err, told)
			}
		})
	}
}

func elementKey(page []byte, i int) []byte {
	e := page[boltfile.PageHeaderLen+i*boltfile.PageElementLen:]
	pos, n := binary.NativeEndian.Uint32(e[4:]), binary.NativeEndian.Uint32(e[8:])
	return e[pos : pos+n]
}
