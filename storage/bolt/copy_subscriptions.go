package bolt

import (
	"context"
	"errors"
	"fmt"

	"github.com/partita-go/partita/storage/bolt/internal/files"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// copySubscriptions copies the subscriptions of a store that nobody writes, entry by entry,
// to a file of the store that the copy is. There is nothing to do if there are none.
func (c *copying) copySubscriptions(ctx context.Context, from *boltfile.File, dir *boltfile.Directory, id format.StoreID, d messages.Descriptor) error {
	if from == nil {
		return nil
	}
	c.result.SubscriptionsFrom = from.Size()
	return c.copyEntries(ctx, from, format.RoleSubscriptions, dir, id, d, format.KeySubscriptions)
}

// restoreSubscriptions carries the subscriptions of a copy over, if it has any.
func (c *copying) restoreSubscriptions(ctx context.Context, from *files.Set, dir *boltfile.Directory, id format.StoreID) (err error) {
	path := from.Path(format.SubscriptionsFileName)
	if there, err := from.Directory.PresentWhole(format.SubscriptionsFileName); err != nil || !there {
		return err
	}
	f, err := from.OpenFile(format.RoleSubscriptions, true)
	if err != nil {
		return err
	}
	h, err := f.ReadHeader(format.RoleSubscriptions)
	switch {
	case err != nil:
	case h.ID != from.ID:
		err = fmt.Errorf("%w: %s is of store %v, %s of store %v", storage.ErrForeign, path, h.ID, format.LogFileName, from.ID)
	default:
		err = c.copySubscriptions(ctx, f, dir, id, from.Descriptor)
	}
	return errors.Join(err, f.Close())
}
