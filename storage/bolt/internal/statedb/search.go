package statedb

import (
	"bytes"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// A page has no checksum: an entry whose key is damaged seems to be another workspace's, or nobody's. But it still lies
// where it lay, between its neighbours. So whoever does not find a key looks at the entries beside its place, and takes
// it for missing only if these are sound and stand where they belong. Where a key of a branch is damaged, the search ends
// beside another place.

// missing makes sure that a key that Get has not found is not in a bucket. check says whether an entry is sound.
func missing(c *bbolt.Cursor, bucket, key []byte, check func(k, v []byte) error) error {
	k, v := c.Seek(key)
	if bytes.Equal(k, key) {
		return astray(bucket, key) // it is there, and Get went elsewhere
	}
	if k != nil {
		if err := check(k, v); err != nil {
			return err
		}
	}
	k, v, err := before(c, bucket, key, k)
	if err != nil || k == nil {
		return err
	}
	return check(k, v)
}

// atOrBefore returns the last entry that is not above a key, nil if there is none.
func atOrBefore(c *bbolt.Cursor, bucket, key []byte) (k, v []byte, err error) {
	if k, v = c.Seek(key); k != nil && bytes.Equal(k, key) {
		return k, v, nil
	}
	return before(c, bucket, key, k)
}

// before returns the last entry that is below a key, nil if there is none. A cursor has sought the key, and stands at what
// it has found instead, nil if that was the end.
func before(c *bbolt.Cursor, bucket, key, found []byte) (k, v []byte, err error) {
	switch {
	case found == nil:
		k, v = c.Last()
	case bytes.Compare(found, key) < 0:
		return nil, nil, astray(bucket, key)
	default:
		k, v = c.Prev()
	}
	if k != nil && bytes.Compare(k, key) >= 0 {
		return nil, nil, astray(bucket, key)
	}
	return k, v, nil
}

// astray says that a search went wrong: the keys of a page that it has passed are not in order.
func astray(bucket, sought []byte) error {
	return &storage.DamagedError{Where: format.PlaceOf(bucket, "key %x", sought), Cause: format.ErrMisplaced}
}
