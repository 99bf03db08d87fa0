package bolt

import (
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// branch is a page that refers to others, and whose first entry leads to another such
// page if it is an upper one.
type branch struct {
	file   string
	bucket string
	page   int
	// above is the root of its tree, which is itself in a tree of two levels.
	above int
}

// branchesOf returns for each bucket the root page and the first branch below it, as far
// as they are branches.
func branchesOf(t *testing.T, dir string, r format.Role) (branches []branch) {
	t.Helper()
	f := openPlain(t, dir, r)
	content, err := os.ReadFile(filepath.Join(dir, r.FileName()))
	if err != nil {
		t.Fatal(err)
	}
	err = f.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			root := int(b.Root())
			for page := root; page != 0 && boltfile.PageFlags(content[page*os.Getpagesize():]) == boltfile.PageBranch; {
				branches = append(branches, branch{file: r.FileName(), bucket: string(name), page: page, above: root})
				page = int(binary.NativeEndian.Uint64(content[page*os.Getpagesize()+boltfile.PageHeaderLen+8:]))
			}
			return nil
		})
	})
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return branches
}

// withBranches makes a store of so many events that its trees have pages that refer to others.
func withBranches(t *testing.T, events int) (dir string, d messages.Descriptor, branches []branch) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir, testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.appendMany(events, 0)
	w.flush()
	d = s.Descriptor()
	closeStore(t, s)
	branches = append(branchesOf(t, dir, format.RoleLog), branchesOf(t, dir, format.RoleState)...)
	if len(branches) < 5 {
		t.Fatalf("got branches %+v, want some of each file", branches)
	}
	return dir, d, branches
}

// A page that refers to itself or to one above it keeps the store from opening: bbolt
// would go down for ever, and take the process with it.
func TestCircles(t *testing.T) {
	t.Parallel()
	dir, d, branches := withBranches(t, 6000)
	whole := filesOf(t, dir)
	for _, b := range branches {
		for to, want := range map[int]string{b.page: "another refers", b.above: "another refers", 1: "got flags"} {
			for _, entry := range []int{0, 1} {
				damaged := []byte(whole[b.file])
				binary.NativeEndian.PutUint64(damaged[b.page*os.Getpagesize()+boltfile.PageHeaderLen+entry*boltfile.PageElementLen+8:], uint64(to))
				writeFiles(t, dir, whole)
				writeFiles(t, dir, map[string]string{b.file: string(damaged)})
				_, err := Open(t.Context(), dir, d, Options{})
				if !errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), want) {
					t.Errorf("%+v: got %v, want damage", b, err)
				}
				if entry > 0 {
					continue // it takes a while
				}
				if r, err := Verify(t.Context(), dir, verify.Options{}); err != nil || r.FaultCount == 0 {
					t.Errorf("%+v: verify: got %v, %v", b, r, err)
				}
			}
		}
	}
	writeFiles(t, dir, whole)
	closeStore(t, open(t, dir, d, Options{}))
}

// closedWith60 leaves a small store that was closed, with 60 events.
func closedWith60(t *testing.T) (dir string, d messages.Descriptor, events []messages.Event) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir, testDescriptor(1, messages.TrustNone), smallMap)
	w := takeOver(t, s, 0)
	w.appendMany(60, 2)
	w.flush()
	events = collectEvents(t, s.Log(t.Context(), 1))
	closeStore(t, s)
	return dir, s.Descriptor(), events
}

// A page that takes others for its own keeps the store from being written: what is written
// anew frees its pages, which others use, or so many that there is no memory for their list.
// It can still be read.
func TestPagesOfOthers(t *testing.T) {
	dir, d, want := closedWith60(t)
	refused := make(map[uint16]int)
	for _, r := range []format.Role{format.RoleLog, format.RoleState} {
		unreadable := make(map[int]bool)
		sound := []byte(filesOf(t, dir)[r.FileName()])
		for page := range len(sound) / os.Getpagesize() {
			at := page * os.Getpagesize()
			if used := boltfile.PageFlags(sound[at:]); page < boltfile.MetaPages || used == 0 {
				continue
			}
			for _, more := range []uint32{1, 1 << 16} {
				damaged := crashCopy(t, dir)
				overwrite(t, filepath.Join(damaged, r.FileName()), int64(at)+boltfile.PageOverflowAt, binary.NativeEndian.AppendUint32(nil, more))
				pages, err := Verify(t.Context(), damaged, verify.Options{})
				expect.NoError(t, err)
				if pages.FaultCount == 0 {
					continue // it was free
				}
				before := filesOf(t, damaged)
				_, err = Open(t.Context(), damaged, d, smallMap)
				expect.ErrorIs(t, err, storage.ErrDamaged, r, page, more)
				expect.Equal(t, true, strings.Contains(err.Error(), r.FileName()+", page "), err)
				expect.Equal(t, true, maps.Equal(before, filesOf(t, damaged)))
				refused[boltfile.PageFlags(sound[at:])]++
				read, err := OpenExisting(t.Context(), damaged, Options{ReadOnly: true})
				if errors.Is(err, storage.ErrDamaged) {
					unreadable[page] = true
					continue
				}
				expect.NoError(t, err, r, page, more)
				expect.Equal(t, want, collectEvents(t, read.Log(t.Context(), 1)))
				closeStore(t, read)
			}
		}
		if len(unreadable) > 1 {
			t.Errorf("%v: pages %v keep the file from being read, want the root alone", r, unreadable)
		}
	}
	for _, kind := range []uint16{boltfile.PageBranch, boltfile.PageLeaf, boltfile.PageFreelist} {
		if refused[kind] < 2 {
			t.Errorf("pages with flags %#x: %d were refused", kind, refused[kind])
		}
	}
}
