package tests

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/verify"
	"github.com/partita-go/partita/tests/internal/powerloss"
)

// storeFiles are the files of a store that has subscriptions.
var storeFiles = []string{"log.db", "state.db", "subscriptions.db"}

// allFiles are those that it has while it is open, and after a kill.
var allFiles = append(slices.Clone(storeFiles), walFile)

// TestTruncatedFiles cuts each file, log.wal after a kill too, at each of its pages, and somewhere
// within it: it is always noticed.
func TestTruncatedFiles(t *testing.T) {
	s, want := killedSite(t, 12, 3)
	random := rand.New(rand.NewPCG(uint64(setting("SEED", 1)), 0))
	var tally flipTally
	for _, file := range allFiles {
		used := len(must(os.ReadFile(s.path(file)))(t))
		for page := 0; page < used; page += os.Getpagesize() {
			for _, size := range []int{page, page + 1 + random.IntN(os.Getpagesize()-1)} {
				cut := s.copied(t)
				check(t, os.Truncate(cut.path(file), int64(size)))
				v := cut.judge(t, want)
				tally.count(v)
				if v.by == "" || len(v.wrong) > 0 {
					t.Errorf("%s cut to %d of %d bytes: found by %q, wrong: %v", file, size, used, v.by, v.wrong)
				}
				check(t, os.RemoveAll(cut.dir))
			}
		}
	}
	t.Logf("truncated: %v", &tally)
}

// foreignFiles are files of other applications.
var foreignFiles = map[string]func(t testing.TB, path string){
	"a text": func(t testing.TB, path string) {
		check(t, os.WriteFile(path, []byte("Dear Sir or Madam,\n"), 0o600))
	},
	"a database of SQLite": func(t testing.TB, path string) {
		content := make([]byte, 2*4096)
		copy(content, "SQLite format 3\x00\x10\x00\x01\x01\x00\x40\x20\x20")
		check(t, os.WriteFile(path, content, 0o600))
	},
	"zeros": func(t testing.TB, path string) { check(t, os.WriteFile(path, make([]byte, 1<<16), 0o600)) },
	"random bytes": func(t testing.TB, path string) {
		content := make([]byte, 1<<16)
		must(rand.NewChaCha8([32]byte{1}).Read(content))(t)
		check(t, os.WriteFile(path, content, 0o600))
	},
	"a bbolt file of somebody else": func(t testing.TB, path string) {
		db := must(bbolt.Open(path, 0o600, nil))(t)
		check(t, db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte("log"))
			if err != nil {
				return err
			}
			return b.Put([]byte("key"), []byte("value"))
		}))
		check(t, db.Close())
	},
}

// TestForeignFiles puts files of other applications in the place of each file: they are
// refused, also by verify, and nothing is changed.
func TestForeignFiles(t *testing.T) {
	s, _ := killedSite(t, 2, 2)
	for name, put := range foreignFiles {
		for _, file := range allFiles {
			t.Run(name+" for "+file, func(t *testing.T) {
				c := s.copied(t)
				check(t, os.Remove(c.path(file)))
				put(t, c.path(file))
				before := c.contents(t)
				_, err := bolt.Open(limit(t), c.dir, c.app.Descriptor, c.bolt)
				wantRefused(t, file, err)
				report, err := bolt.Verify(limit(t), c.dir, verify.Options{})
				if file != walFile || report.FaultCount == 0 {
					wantRefused(t, file, err)
				}
				if !slices.Equal(before, c.contents(t)) {
					t.Error("the files were changed")
				}
			})
		}
	}
}

// wantRefused makes sure that a file of another application is refused. A log.wal of which not
// even the beginning is there is damage.
func wantRefused(t *testing.T, file string, err error) {
	t.Helper()
	if file != walFile || !errors.Is(err, storage.ErrDamaged) {
		wantError(t, err, storage.ErrForeign)
	}
}

// contents are the files of a site, with their names.
func (s *site) contents(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, e := range must(os.ReadDir(s.dir))(t) {
		all = append(all, e.Name(), string(must(os.ReadFile(s.path(e.Name())))(t)))
	}
	return all
}

// setFormat gives a file of a closed store another format version: see docs/format.md.
func (s *site) setFormat(t testing.TB, file string, format uint16) {
	t.Helper()
	k := key{file, "header", []byte("header")}
	header := s.stored(t, k)
	binary.BigEndian.PutUint16(header[8:], format)
	end := len(header) - 4
	s.put(t, k, binary.BigEndian.AppendUint32(header[:end], crc32.Checksum(header[:end], crc32.MakeTable(crc32.Castagnoli))))
}

// TestOtherFormats: a format that is not known, or not any more, is refused, by either file,
// and nothing is changed.
func TestOtherFormats(t *testing.T) {
	s, _ := damagedSite(t, 2, 2)
	for _, other := range []struct {
		file   string
		format uint16
	}{
		{"log.db", 1}, {"log.db", 2}, {"log.db", 1000},
		{"state.db", 1}, {"state.db", 2}, {"state.db", 1000}, {"subscriptions.db", 1000},
	} {
		c := s.copied(t)
		c.setFormat(t, other.file, other.format)
		before := c.contents(t)
		_, err := bolt.Open(limit(t), c.dir, c.app.Descriptor, c.bolt)
		wantError(t, err, storage.ErrFormat)
		_, err = bolt.Verify(limit(t), c.dir, verify.Options{})
		wantError(t, err, storage.ErrFormat)
		if !slices.Equal(before, c.contents(t)) {
			t.Errorf("%s, format %d: the files were changed", other.file, other.format)
		}
	}
}

// TestRebuild deletes state.db: Deploy finds everything as it was.
func TestRebuild(t *testing.T) {
	s, want := damagedSite(t, 12, 3)
	s.deleteState(t)
	d := s.run(t)
	want.compare(t, d.store)
	if n := d.replayed(); n != 0 {
		t.Errorf("got %d events replayed after a rebuild, want 0", n)
	}
	if errored, wrong := d.goOn(limit(t), want); errored || len(wrong) > 0 {
		t.Errorf("got an error: %v, wrong: %v", errored, wrong)
	}
	d.stop(t)
}

// TestReadOnlyFileSystem: on a file system that may not be written what a kill has left opens
// read-only, with what log.wal alone has, verifies, and does not open otherwise; when it may be
// written again, all goes on.
func TestReadOnlyFileSystem(t *testing.T) {
	killed, want := killedSite(t, 2, 2)
	mounted := t.TempDir()
	mount(t, mounted, "-t", "tmpfs", "-o", "size=16m", "partita")
	s := killed.at(filepath.Join(mounted, "store"))
	check(t, os.Mkdir(s.dir, 0o700))
	check(t, powerloss.Copy(killed.dir, s.dir))
	remount := func(how string) {
		out, err := exec.Command("mount", "-o", "remount,"+how, mounted).CombinedOutput()
		if err != nil {
			t.Fatalf("remount: %v: %s", err, out)
		}
	}
	remount("ro")
	_, err := bolt.Open(limit(t), s.dir, s.app.Descriptor, s.bolt)
	wantError(t, err, syscall.EROFS)
	s.wantReadable(t, want)
	remount("rw")
	s.wantGoesOn(t, want)
}

// wantReadable makes sure that a store reads as it was where nobody writes.
func (s *site) wantReadable(t *testing.T, want truth) {
	t.Helper()
	before := s.contents(t)
	verifyFiles(t, s.dir)
	store := openBolt(t, s.dir, s.app.Descriptor, bolt.Options{ReadOnly: true})
	want.compare(t, store)
	check(t, store.Close(limit(t)))
	if !slices.Equal(before, s.contents(t)) {
		t.Error("the files were changed")
	}
}

// wantGoesOn makes sure that a store opens with all that it had, and goes on.
func (s *site) wantGoesOn(t *testing.T, want truth) {
	t.Helper()
	d := s.run(t)
	want.compare(t, d.store)
	if errored, wrong := d.goOn(limit(t), want); errored || len(wrong) > 0 {
		t.Errorf("got an error: %v, wrong: %v", errored, wrong)
	}
	d.stop(t)
	verifyFiles(t, s.dir)
}

// TestReadOnlyFiles: a file that may not be written keeps a store that was killed from opening, and is
// named; when it may, all goes on.
func TestReadOnlyFiles(t *testing.T) {
	killed, want := killedSite(t, 2, 2)
	for _, file := range storeFiles {
		t.Run(file, func(t *testing.T) {
			s := killed.copied(t)
			allow := forbidWrites(t, s.path(file))
			_, err := bolt.Open(limit(t), s.dir, s.app.Descriptor, s.bolt)
			if !errors.Is(err, syscall.EROFS) && !errors.Is(err, os.ErrPermission) {
				t.Errorf("got %v, want that it may not be written", err)
			}
			wantText(t, err, s.path(file))
			s.wantReadable(t, want)
			allow()
			s.wantGoesOn(t, want)
		})
	}
	// It is not written, but removed: that its directory allows, unless it is mounted.
	t.Run(walFile, func(t *testing.T) {
		s := killed.copied(t)
		allow := forbidWrites(t, s.path(walFile))
		s.wantReadable(t, want)
		store, err := bolt.Open(limit(t), s.dir, s.app.Descriptor, s.bolt)
		check(t, err)
		if err := store.Close(limit(t)); err != nil {
			wantError(t, err, syscall.EBUSY)
			wantText(t, err, s.path(walFile))
			s.wantReadable(t, want)
			allow()
		}
		s.wantGoesOn(t, want)
	})
}

// forbidWrites makes a file read-only: by its permissions or, for those whom these do not
// bind, by a mount of its own.
func forbidWrites(t *testing.T, path string) (allow func()) {
	t.Helper()
	check(t, os.Chmod(path, 0o400))
	if f, err := os.OpenFile(path, os.O_RDWR, 0); err != nil {
		return func() { check(t, os.Chmod(path, 0o600)) }
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	mount(t, path, "--bind", path)
	if out, err := exec.Command("mount", "-o", "remount,bind,ro", path).CombinedOutput(); err != nil {
		t.Fatalf("remount: %v: %s", err, out)
	}
	return func() { check(t, exec.Command("umount", path).Run()) }
}

// mount mounts a file system for the rest of the test, if the machine lets us.
func mount(t *testing.T, at string, args ...string) {
	t.Helper()
	if out, err := exec.Command("mount", append(args, at)...).CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", at).CombinedOutput(); err != nil && exec.Command("mountpoint", "-q", at).Run() == nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
}
