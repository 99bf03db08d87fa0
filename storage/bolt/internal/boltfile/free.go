package boltfile

import (
	"bytes"

	"go.etcd.io/bbolt"
)

// FreeKeys tells which keys of a bucket are free. It is fastest when it is asked in
// order: between two keys of the bucket that are next to each other it looks once.
// Between two questions nobody may put other keys than those that it was asked for.
type FreeKeys struct {
	cursor *bbolt.Cursor
	// What lies between them is free; if it is endless, all above the lower one.
	from, to []byte
	endless  bool
}

// NewFreeKeys returns what looks for keys of a bucket.
func NewFreeKeys(b *bbolt.Bucket) *FreeKeys { return &FreeKeys{cursor: b.Cursor()} }

// Free reports whether a key is not there. Ascending keys are fastest.
func (f *FreeKeys) Free(key []byte) bool {
	if f.from != nil && bytes.Compare(key, f.from) > 0 && (f.endless || bytes.Compare(key, f.to) < 0) {
		// Who asks again asks whether somebody has put it meanwhile.
		f.from = append(f.from[:0], key...)
		return true
	}
	found, _ := f.cursor.Seek(key)
	f.from = append(f.from[:0], key...)
	// The cursor's memory may change with the next put.
	f.to, f.endless = append(f.to[:0], found...), found == nil
	return !bytes.Equal(found, key)
}
