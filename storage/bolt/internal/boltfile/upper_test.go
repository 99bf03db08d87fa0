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

// refuses makes sure that a file with such pages is damaged, whoever opens it, and that bbolt does not end in it.
func refuses(t *testing.T, path string, p *pages, want string) {
	t.Helper()
	write(t, path, p.content)
	for _, readOnly := range []bool{true, false} {
		f, err := open(t, path, &bbolt.Options{ReadOnly: readOnly})
		expect.NoError(t, err)
		if _, err := f.ReadHeader(format.RoleLog); !errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), want) {
			t.Errorf("read-only %v: got %v, want damage: %s", readOnly, err, want)
		}
		if f.Ends() {
			t.Errorf("read-only %v: bbolt ends, want that it may not", readOnly)
		}
		expect.NoError(t, f.Close())
	}
}

// A circle behind a page that is referred to again and again is found in a small file, too.
func TestCircleBehindRepetitions(t *testing.T) {
	path := made(t, 200)
	p := readPages(t, path)
	one, two, three := p.below(p.root, 1), p.below(p.root, 2), p.below(p.root, 3)
	for page, c := range map[int]struct{ entries, to int }{p.root: {254, one}, one: {2, two}, two: {2, three}, three: {2, two}} {
		at := p.at(page)
		binary.NativeEndian.PutUint16(at[boltfile.PageFlagsAt:], boltfile.PageBranch)
		binary.NativeEndian.PutUint16(at[boltfile.PageCountAt:], uint16(c.entries))
		for n := range c.entries {
			element := p.entry(page, n)
			// The key: the last 8 bytes.
			binary.NativeEndian.PutUint32(element, uint32(p.size-8-boltfile.PageHeaderLen-n*boltfile.PageElementLen))
			binary.NativeEndian.PutUint32(element[4:], 8)
			p.refer(page, n, c.to)
		}
	}
	refuses(t, path, p, "another refers")
}

// The header of an application with many kinds has a page of its own.
func TestCircleInTheHeader(t *testing.T) {
	path := made(t, 1)
	page := 0
	f, err := open(t, path, &bbolt.Options{})
	expect.NoError(t, err)
	expect.NoError(t, f.Update(func(tx *bbolt.Tx) error { return putHeader(tx, 200) }))
	expect.NoError(t, f.View(func(tx *bbolt.Tx) error { page = int(tx.Bucket(format.BucketHeader).RootPage()); return nil }))
	expect.NoError(t, f.Close())
	if page == 0 {
		t.Fatal("the header has no page of its own")
	}
	p := readPages(t, path)
	binary.NativeEndian.PutUint16(p.at(page)[boltfile.PageFlagsAt:], boltfile.PageBranch)
	p.refer(page, 0, page)
	refuses(t, path, p, "another refers")
}

// In a large file the branches of a tree are glanced at before its leaves: the last of them is, too. An entry
// that leads to a page of no tree is damage.
func TestUpperPagesComeFirst(t *testing.T) {
	path := made(t, 20_000)
	p := readPages(t, path)
	last := p.below(p.root, boltfile.PageCount(p.at(p.root))-1)
	if pages := len(p.content) / p.size; boltfile.PageFlags(p.at(last)) != boltfile.PageBranch || pages < 600 {
		t.Fatalf("got %d pages, want a large file of three levels", pages)
	}
	end := boltfile.PageCount(p.at(last)) - 1
	leaf := p.below(last, end)
	for to, want := range map[int]string{p.root: "another refers", last: "another refers", p.leaf: "another refers"} {
		p.refer(last, end, to)
		refuses(t, path, p, want)
	}
	p.refer(last, end, leaf)
	for to, want := range map[int]string{1: "got flags 0x4", p.freelist: "got flags 0x10"} {
		p.refer(p.root, 1, to)
		refuses(t, path, p, want)
	}
}

// A count of entries for which a page has no room is damage of that page, also where they
// would end behind the file. It can still be read.
func TestPageWithoutRoomForItsEntries(t *testing.T) {
	path := made(t, 200)
	sound := readPages(t, path)
	all := []int{sound.root}
	for i := range boltfile.PageCount(sound.at(sound.root)) {
		all = append(all, sound.below(sound.root, i))
	}
	for _, page := range all {
		p := readPages(t, path)
		binary.NativeEndian.PutUint16(p.at(page)[boltfile.PageCountAt:], 0xffff)
		write(t, path, p.content)
		f, err := open(t, path, &bbolt.Options{})
		expect.NoError(t, err)
		if _, err := f.ReadHeader(format.RoleLog); !errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), fmt.Sprintf("page %d: ", page)) {
			t.Errorf("page %d: got %v, want damage", page, err)
		}
		expect.NoError(t, f.Close())
		f, err = open(t, path, &bbolt.Options{ReadOnly: true})
		expect.NoError(t, err)
		if _, err := f.ReadHeader(format.RoleLog); err != nil && page != sound.root {
			t.Errorf("page %d: to read: got %v", page, err)
		}
		expect.NoError(t, f.Close())
		write(t, path, sound.content)
	}
}
