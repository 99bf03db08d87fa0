package boltfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// open opens a bbolt file, which errors name by its path.
func open(t testing.TB, path string, o *bbolt.Options) (*boltfile.File, error) {
	t.Helper()
	return boltfile.OpenFile(expect.Opened(t, boltfile.OpenDirectory, filepath.Dir(path)), filepath.Base(path), path, o)
}

// opened opens a bbolt file until the test ends.
func opened(t testing.TB, path string, o *bbolt.Options) *boltfile.File {
	t.Helper()
	f, err := open(t, path, o)
	expect.NoError(t, err)
	t.Cleanup(func() { expect.NoError(t, f.Close()) })
	return f
}

// logKey is the key of an entry of a file that was made.
func logKey(n int) []byte { return format.AppendLSNKey(nil, messages.LSN(n)) }

// made makes a log.db with so many entries of 100 bytes, and a list of free pages that is not empty.
func made(t testing.TB, entries int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), format.LogFileName)
	f, err := open(t, path, &bbolt.Options{PageSize: 4096})
	expect.NoError(t, err)
	expect.NoError(t, f.Update(func(tx *bbolt.Tx) error {
		for _, name := range format.RoleLog.Buckets() {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return errors.Join(putHeader(tx, 1), put(tx, 1, entries))
	}))
	for range 4 { // what is written anew leaves free pages
		expect.NoError(t, f.Update(func(tx *bbolt.Tx) error { return put(tx, 1, 1) }))
	}
	expect.NoError(t, f.Close())
	return path
}

// putHeader writes the header of an application with so many kinds.
func putHeader(tx *bbolt.Tx, kinds int) error {
	d := messages.Descriptor{Application: "test", Partitions: 1}
	for i := range kinds {
		d.Kinds = append(d.Kinds, messages.Kind{ID: messages.WSKind(i + 1), Name: fmt.Sprintf("kind %d", i)})
	}
	h := format.Header{Role: format.RoleLog, ID: format.StoreID{1}, Descriptor: d}
	return tx.Bucket(format.BucketHeader).Put(format.KeyHeader, h.Encode())
}

func put(tx *bbolt.Tx, first, last int) error {
	b := tx.Bucket(format.BucketLog)
	b.FillPercent = boltfile.LogFill
	for n := first; n <= last; n++ {
		if err := b.Put(logKey(n), make([]byte, 100)); err != nil {
			return err
		}
	}
	return nil
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	expect.NoError(t, err)
	return content
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	expect.NoError(t, os.WriteFile(path, content, 0o600))
}
