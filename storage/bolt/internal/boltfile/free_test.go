package boltfile_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Asked in any order, and while the keys that were asked for are put, FreeKeys says
// what Get says.
func TestFreeKeys(t *testing.T) {
	f := opened(t, made(t, 0), &bbolt.Options{})
	key := func(n int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(n)) }
	rapid.Check(t, func(rt *rapid.T) {
		stored := rapid.SliceOfN(rapid.IntRange(0, 60), 0, 20).Draw(rt, "stored")
		asked := rapid.SliceOfN(rapid.IntRange(0, 60), 1, 40).Draw(rt, "asked")
		if rapid.Bool().Draw(rt, "sorted") {
			slices.Sort(asked)
		}
		puts := rapid.Bool().Draw(rt, "puts")
		tx, err := f.DB.Begin(true)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		b, err := tx.CreateBucket([]byte("free"))
		if err != nil {
			rt.Fatal(err)
		}
		for _, n := range stored {
			mustPut(rt, b, key(n))
		}
		keys := boltfile.NewFreeKeys(b)
		for _, n := range asked {
			if got, want := keys.Free(key(n)), b.Get(key(n)) == nil; got != want {
				rt.Fatalf("key %d: free is %v, want %v", n, got, want)
			}
			if puts {
				mustPut(rt, b, key(n))
			}
		}
	})
}

func TestKeyIsFreeOnce(t *testing.T) {
	f := opened(t, made(t, 0), &bbolt.Options{})
	err := f.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(format.BucketLog)
		keys := boltfile.NewFreeKeys(b)
		if !keys.Free([]byte{1}) || !keys.Free([]byte{2}) {
			t.Error("got taken, want free")
		}
		if err := b.Put([]byte{2}, nil); err != nil {
			return err
		}
		if keys.Free([]byte{2}) {
			t.Error("got free, want taken: it was put meanwhile")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func mustPut(t *rapid.T, b *bbolt.Bucket, key []byte) {
	t.Helper()
	if err := b.Put(key, []byte{1}); err != nil {
		t.Fatal(err)
	}
}
