package bolt

import (
	"context"
	"errors"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
)

// checkInline checks the file's root and the small buckets that lie in its entries. bbolt
// copies such a bucket to the heap where it is not aligned, and an entry that lies outside
// of it becomes a pointer to nowhere: the garbage collector ends the process when it meets
// that, and nothing can catch it. Elsewhere entries point into the map, where a fault can
// be caught.
func (f *file) checkInline() error {
	var found error
	fault := func(where, text string) {
		if found == nil {
			found = &storage.DamagedError{Where: where, Cause: errors.New(text)}
		}
	}
	err := f.view(func(tx *bbolt.Tx) error {
		c := f.newPageCheck(context.Background(), tx, fault, func(uint64, uint64) {})
		c.inlineOnly = true
		root, _, err := c.meta(uint64(tx.ID()))
		if err != nil {
			return err
		}
		if err := c.walk(root, nil, nil, 0); !errors.Is(err, errPage) {
			return err
		}
		return nil
	})
	if err == nil {
		err = found
	}
	return err
}
