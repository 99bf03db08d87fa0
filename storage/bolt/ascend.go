package bolt

import (
	"bytes"
	"fmt"

	"github.com/partita-go/partita/storage"
)

// mustAscend makes sure that a key read of a bucket is above the one read before, nil if it is the
// first. Where a page refers to one above it, bbolt's cursor goes round for ever.
func (f *file) mustAscend(bucket, before, k []byte) error {
	if bytes.Compare(k, before) > 0 {
		return nil
	}
	return &storage.DamagedError{Where: f.placeOf(bucket, "key %x", k), Cause: fmt.Errorf("it comes behind key %x, want one above it", before)}
}
