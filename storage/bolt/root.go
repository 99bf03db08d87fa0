package bolt

import (
	"context"
	"errors"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
)

// checkRoot checks the file's root and the small buckets that lie in its entries. bbolt
// copies such a bucket to the heap where it is not aligned, and an entry that lies outside
// of it becomes a pointer to nowhere: the garbage collector ends the process when it meets
// that, and nothing can catch it. Elsewhere entries point into the map, where a fault can
// be caught.
//
// In a file that will be written it checks the list of free pages, too: the next write takes
// pages from there, and frees those of the list itself.
func (f *file) checkRoot() error {
	var found error
	fault := func(where, text string) {
		if found == nil {
			found = &storage.DamagedError{Where: where, Cause: errors.New(text)}
		}
	}
	err := f.view(func(tx *bbolt.Tx) error {
		c := f.newPageCheck(context.Background(), tx, fault, func(uint64, uint64) {})
		c.inlineOnly = true
		root, freelist, err := c.meta(uint64(tx.ID()))
		if err != nil {
			return err
		}
		if !f.db.IsReadOnly() {
			err = c.readFreelist(freelist)
		}
		if err == nil {
			err = c.walk(root, nil, nil, 0)
		}
		if errors.Is(err, errPage) {
			return nil
		}
		return err
	})
	if err == nil {
		err = found
	}
	return err
}
