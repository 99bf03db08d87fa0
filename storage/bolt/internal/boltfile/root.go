package boltfile

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
func (f *File) checkRoot() error {
	return f.checkSome(func(c *PageCheck, root, _ uint64) error {
		c.inlineOnly = true
		return c.walk(root, nil, nil, 0)
	})
}

// CheckFreelist checks the list of free pages of a file that will be written. The next write
// takes pages from there, and frees those of the list itself; and bbolt takes as much memory
// as the list says, before anything else can look at it: where there is not so much, the
// process ends, and nothing can catch that.
func (f *File) CheckFreelist() error {
	return f.checkSome(func(c *PageCheck, _, freelist uint64) error { return c.readFreelist(freelist) })
}

// checkSome checks what hangs on the last commit's meta page, and returns the first fault.
func (f *File) checkSome(check func(c *PageCheck, root, freelist uint64) error) error {
	var found error
	fault := func(where, text string) {
		if found == nil {
			found = &storage.DamagedError{Where: where, Cause: errors.New(text)}
		}
	}
	err := f.View(func(tx *bbolt.Tx) error {
		c := f.NewPageCheck(context.Background(), tx, fault, func(uint64, uint64) {})
		root, freelist, err := c.Meta(uint64(tx.ID()))
		if err != nil {
			return err
		}
		if err := check(c, root, freelist); !errors.Is(err, errPage) {
			return err
		}
		return nil
	})
	if err == nil {
		err = found
	}
	return err
}
