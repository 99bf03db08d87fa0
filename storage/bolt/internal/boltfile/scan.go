package boltfile

import (
	"bytes"
	"context"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Scan reads a bucket from a key on, in short transactions. Without the bucket there is
// nothing to read.
func (f *File) Scan(ctx context.Context, bucket, from []byte, each func(k, v []byte) error) error {
	next := append([]byte(nil), from...)
	var last []byte // bbolt's, as long as the transaction
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := f.View(func(tx *bbolt.Tx) error {
			more = false
			b := tx.Bucket(bucket)
			if b == nil {
				return nil
			}
			c := b.Cursor()
			k, v := c.Seek(next)
			for n := 0; k != nil; n++ {
				if err := f.MustAscend(bucket, last, k); err != nil {
					return err
				}
				if n == ImageChunk {
					next, last, more = append(next[:0], k...), bytes.Clone(last), true
					return nil
				}
				if err := each(k, v); err != nil {
					return err
				}
				last = k
				k, v = c.Next()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// BadKey says that an entry's key is not one of its bucket.
func (f *File) BadKey(bucket, k []byte) *storage.DamagedError {
	return &storage.DamagedError{Where: f.PlaceOf(bucket, "key %x", k), Cause: format.ErrLayout}
}

// ImageChunk is how many entries are read in one transaction.
const ImageChunk = 16384
