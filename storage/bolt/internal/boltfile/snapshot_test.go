package boltfile_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// A read after a commit has what was committed, and one after another has its transaction and cursor.
func TestSnapshotIsOfTheLastCommit(t *testing.T) {
	f := snapshotFile(t)
	before := snapshotOf(t, f)
	if again := snapshotOf(t, f); again != before {
		t.Error("the second read has another snapshot")
	}
	for n := byte(1); n < 5; n++ {
		putFirst(t, f, n, 1)
		expect.Equal(t, stored(t, f), n)
		// A snapshot that began before a commit does not serve the reads after it.
		expect.NoError(t, f.Read(func(s *boltfile.Snapshot) error {
			putFirst(t, f, n+100, 1)
			_, v := s.Cursor(format.BucketLog).Seek(logKey(1))
			expect.Equal(t, v[0], n)
			return nil
		}))
		expect.Equal(t, stored(t, f), n+100)
	}
	// One that waits while a transaction is under way does not serve after it.
	expect.NoError(t, f.Update(func(tx *bbolt.Tx) error {
		expect.Equal(t, stored(t, f), 104)
		return tx.Bucket(format.BucketLog).Put(logKey(1), []byte{1})
	}))
	expect.Equal(t, stored(t, f), 1)
	// Nor does one that has read what a commit is about to change.
	f.Commit = func(tx *bbolt.Tx) error {
		expect.Equal(t, stored(t, f), 1)
		return tx.Commit()
	}
	putFirst(t, f, 2, 1)
	expect.Equal(t, stored(t, f), 2)
}

// A commit that maps a larger file waits for all transactions: none waits for the next read then, and a close waits for
// none.
func TestSnapshotLetsTheFileGrow(t *testing.T) {
	f := snapshotFile(t)
	stored(t, f)
	putFirst(t, f, 1, 1<<20)
	expect.Equal(t, stored(t, f), 1)
	// Free pages are used again: a snapshot that waits keeps none.
	unread := snapshotFile(t)
	putFirst(t, unread, 1, 1<<20)
	for n := range byte(20) {
		putFirst(t, f, n, 1<<20)
		stored(t, f)
		putFirst(t, unread, n, 1<<20)
	}
	expect.Equal(t, sizeOf(t, f), sizeOf(t, unread))
	expect.NoError(t, f.Close())
	expect.ErrorIs(t, f.Read(func(*boltfile.Snapshot) error { return nil }), storage.ErrClosed)
}

// A read that fails, or panics, is followed by others; more read at a time than wait afterwards.
func TestSnapshotAfterFailures(t *testing.T) {
	f := snapshotFile(t)
	failed := errors.New("failed")
	expect.ErrorIs(t, f.Read(func(*boltfile.Snapshot) error { return failed }), failed)
	var broken *boltfile.Snapshot
	expect.ErrorIs(t, f.Read(func(s *boltfile.Snapshot) error {
		broken = s
		panic("a page")
	}), storage.ErrDamaged)
	if snapshotOf(t, f) == broken {
		t.Error("a snapshot that panicked is read again")
	}
	expect.Equal(t, stored(t, f), 0)
	var all, reading sync.WaitGroup
	reading.Add(50)
	for range 50 {
		all.Go(func() {
			expect.NoError(t, f.Read(func(*boltfile.Snapshot) error {
				reading.Done()
				reading.Wait()
				return nil
			}))
		})
	}
	all.Wait()
	if n := f.DB.Stats().OpenTxN; n == 0 || n > 16 {
		t.Errorf("%d snapshots wait", n)
	}
	putFirst(t, f, 7, 1)
	expect.Equal(t, stored(t, f), 7)
	f.Poison(failed)
	expect.ErrorIs(t, f.Read(func(*boltfile.Snapshot) error { return nil }), storage.ErrDamaged)
}

func snapshotFile(t *testing.T) *boltfile.File {
	t.Helper()
	f, err := open(t, filepath.Join(t.TempDir(), format.LogFileName), &bbolt.Options{InitialMmapSize: 1 << 20})
	expect.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	expect.NoError(t, f.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(format.BucketLog)
		return err
	}))
	putFirst(t, f, 0, 1)
	return f
}

func putFirst(t *testing.T, f *boltfile.File, first byte, size int) {
	t.Helper()
	value := make([]byte, size)
	value[0] = first
	expect.NoError(t, f.Update(func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketLog).Put(logKey(1), value) }))
}

func stored(t *testing.T, f *boltfile.File) (first byte) {
	t.Helper()
	expect.NoError(t, f.Read(func(s *boltfile.Snapshot) error {
		_, v := s.Cursor(format.BucketLog).Seek(logKey(1))
		first = v[0]
		return nil
	}))
	return first
}

func snapshotOf(t *testing.T, f *boltfile.File) (at *boltfile.Snapshot) {
	t.Helper()
	expect.NoError(t, f.Read(func(s *boltfile.Snapshot) error {
		at = s
		return nil
	}))
	return at
}

func sizeOf(t *testing.T, f *boltfile.File) (size int64) {
	t.Helper()
	expect.NoError(t, f.View(func(tx *bbolt.Tx) error {
		size = tx.Size()
		return nil
	}))
	return size
}
