package boltfile

import (
	"bytes"
	"fmt"

	"github.com/partita-go/partita/storage"
)

// MustAscend makes sure that a key read of a bucket is above the one read before, nil if it is the
// first. Where a page refers to one above it, bbolt's cursor goes round for ever.
func (f *File) MustAscend(bucket, before, k []byte) error {
	if bytes.Compare(k, before) > 0 {
		return nil
	}
	return &storage.DamagedError{Where: f.PlaceOf(bucket, "key %x", k), Cause: fmt.Errorf("it comes behind key %x, want one above it", before)}
}
