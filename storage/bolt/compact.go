package bolt

import (
	"context"
	"errors"

	"github.com/partita-go/partita/storage/bolt/internal/files"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Compact writes a copy of the store in a directory to another one, which must be new or
// empty, without the pages that are free. Nobody may have the store open for writing; it
// is not changed. The copy has the same store id. What is not finished, or has a fault,
// is not kept.
func Compact(ctx context.Context, from, to string, o CopyOptions) (Copied, error) {
	c := newCopying(o)
	s, err := OpenExisting(ctx, from, Options{ReadOnly: true})
	if err != nil {
		return c.result, err
	}
	c.result.ID = s.files.ID.String()
	err = c.into(ctx, to, func(temporary *boltfile.Directory) error {
		if err := c.copySubscriptions(ctx, s.files.Subscriptions.Load(), temporary, s.files.ID, s.files.Descriptor); err != nil {
			return err
		}
		c.result.StateFrom = s.state.Size()
		if err := c.copyEntries(ctx, s.state, format.RoleState, temporary, s.files.ID, s.files.Descriptor, format.KeyDedup, format.KeyProjected, format.KeyWitness); err != nil {
			return err
		}
		return c.copyLog(ctx, s.log, temporary, s.files.ID, s.files.Descriptor, messages.LSN(s.lastLSN.Load()))
	})
	return c.result, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
}

// copyEntries copies a file bucket by bucket into one of the store that the copy is, and what
// the header's bucket has under keys in their order. Pages keep some room, as a flush leaves it:
// keys come in between.
func (c *copying) copyEntries(ctx context.Context, from *boltfile.File, r format.Role, dir *boltfile.Directory, id format.StoreID, d messages.Descriptor, keys ...[]byte) error {
	to, err := files.NewFile(dir, r, id, d, reading())
	if err != nil {
		return err
	}
	done := uint64(0)
	tell := func(_, bytes int) {
		done += uint64(bytes)
		c.o.Progress(CopyProgress{Phase: "copy " + r.FileName(), Done: done})
	}
	for _, bucket := range r.Buckets()[1:] {
		if err == nil {
			err = copyBucket(ctx, from, to, bucket, stateFill, every, tell)
		}
	}
	if err == nil {
		err = copyHeaderValues(from, to, keys...)
	}
	return to.CloseCopy(err)
}

// copyHeaderValues copies what the header's bucket has beside the header, under keys in
// their order.
func copyHeaderValues(from, to *boltfile.File, keys ...[]byte) error {
	var chunk boltfile.Entries
	err := from.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(format.BucketHeader)
		for _, k := range keys {
			if v := b.Get(k); v != nil {
				chunk.Add(k, v)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return to.Put(format.BucketHeader, stateFill, &chunk)
}
