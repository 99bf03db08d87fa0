package bolt

import (
	"context"
	"errors"
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// copySubscriptions copies the subscriptions of a store that nobody writes, entry by entry,
// to a file of the store that the copy is. There is nothing to do if there are none.
func (c *copying) copySubscriptions(ctx context.Context, from *file, dir *directory, id storeID, d messages.Descriptor) error {
	if from == nil {
		return nil
	}
	c.result.SubscriptionsFrom = from.size()
	return c.copyEntries(ctx, from, roleSubscriptions, dir, id, d, keySubscriptions)
}

// restoreSubscriptions carries the subscriptions of a copy over, if it has any.
func (c *copying) restoreSubscriptions(ctx context.Context, from *opening, of *header, dir *directory, id storeID) (err error) {
	path := from.path(subscriptionsFileName)
	if there, err := from.directory.presentWhole(subscriptionsFileName); err != nil || !there {
		return err
	}
	f, err := from.openFile(roleSubscriptions, true)
	if err != nil {
		return err
	}
	h, err := f.readHeader(roleSubscriptions)
	switch {
	case err != nil:
	case h.id != of.id:
		err = fmt.Errorf("%w: %s is of store %v, %s of store %v", storage.ErrForeign, path, h.id, logFileName, of.id)
	default:
		err = c.copySubscriptions(ctx, f, dir, id, of.descriptor)
	}
	return errors.Join(err, f.close())
}
