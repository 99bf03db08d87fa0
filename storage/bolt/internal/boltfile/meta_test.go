package boltfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// The page size is the file's own, not this machine's.
func TestMetaPageSize(t *testing.T) {
	for _, size := range []int{1024, 4096, 65536} {
		path := filepath.Join(t.TempDir(), format.LogFileName)
		f, err := open(t, path, &bbolt.Options{PageSize: size})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // both pages become the newer one
			if err := f.CheckMeta(format.RoleLog); err != nil {
				t.Fatalf("page size %d: %v", size, err)
			}
			if err := f.Update(func(*bbolt.Tx) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.Handle.WriteAt([]byte{1}, int64(size)+boltfile.MetaPageSizeAt+3); err != nil {
			t.Fatal(err)
		}
		if err := f.CheckMeta(format.RoleLog); !errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), "page size") {
			t.Fatalf("page size %d: got %v", size, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Before the first commit after an open the newer meta page is written once more, and not again.
// The commits here fail before they write anything.
func TestMetaIsVouchedFor(t *testing.T) {
	path := made(t, 1)
	before := read(t, path)
	f := opened(t, path, &bbolt.Options{MaxSize: len(before)})
	long := time.Unix(1_000_000_000, 0)
	for _, wantWritten := range []bool{true, false} {
		expect.NoError(t, os.Chtimes(path, long, long))
		expect.ErrorIs(t, f.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket(format.BucketLog).Put(logKey(1), make([]byte, len(before)))
		}), storage.ErrFull)
		info, err := os.Stat(path)
		expect.NoError(t, err)
		if written := !info.ModTime().Equal(long); written != wantWritten {
			t.Errorf("got written %v, want %v", written, wantWritten)
		}
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("what was written differs from what was there")
	}
}

// FuzzMeta: no bytes are taken for a meta page unless they have its checksum, and then
// a changed byte of what bbolt reads is an error.
func FuzzMeta(f *testing.F) {
	const pageSize = 4096
	f.Add(make([]byte, boltfile.MetaEnd), uint16(boltfile.MetaMagicAt), byte(1))
	f.Add(bytes.Repeat([]byte{0xff}, boltfile.MetaEnd), uint16(boltfile.MetaPageSizeAt), byte(0x80))
	f.Fuzz(func(t *testing.T, page []byte, at uint16, flip byte) {
		meta := make([]byte, boltfile.MetaEnd)
		copy(meta, page)
		_ = boltfile.ValidMeta(meta, pageSize)
		binary.NativeEndian.PutUint32(meta[boltfile.MetaMagicAt:], boltfile.MetaMagic)
		binary.NativeEndian.PutUint32(meta[boltfile.MetaVersionAt:], boltfile.MetaVersion)
		binary.NativeEndian.PutUint32(meta[boltfile.MetaPageSizeAt:], pageSize)
		sum := fnv.New64a()
		_, _ = sum.Write(meta[boltfile.MetaMagicAt:boltfile.MetaChecksumAt])
		binary.NativeEndian.PutUint64(meta[boltfile.MetaChecksumAt:], sum.Sum64())
		if err := boltfile.ValidMeta(meta, pageSize); err != nil {
			t.Fatal(err)
		}
		place := boltfile.MetaMagicAt + int(at)%(boltfile.MetaEnd-boltfile.MetaMagicAt)
		meta[place] ^= flip
		if err := boltfile.ValidMeta(meta, pageSize); err == nil && flip != 0 {
			t.Errorf("byte %d was changed, and is accepted", place)
		}
	})
}
