package bolt

import (
	"context"
	"errors"
	"fmt"

	"github.com/partita-go/partita/storage"
)

// Restore makes a store of a copy: log.db with a new store id, and state.db rebuilt from
// it, since the index of deduplication ids in it depends on the store's id. Of the copy
// only log.db is needed, and log.wal if it has one; it is not changed; its subscriptions are carried over if
// subscriptions.db is there too. The directory must be new or empty. What
// is not finished, or has a fault, is not kept.
func Restore(ctx context.Context, from, to string, o CopyOptions) (Copied, error) {
	c := newCopying(o)
	op := &opening{Store: &Store{options: Options{ReadOnly: true}.WithDefaults()}, dir: from}
	if there, err := present(op.path(logFileName)); err != nil {
		return c.result, err
	} else if !there {
		return c.result, fmt.Errorf("%w: %s", storage.ErrNotFound, op.path(logFileName))
	}
	f, err := op.openFile(roleLog, true)
	if err != nil {
		return c.result, err
	}
	err = c.into(ctx, to, func(temporary string) error { return c.restore(ctx, op, f, temporary) })
	return c.result, errors.Join(err, f.close())
}

func (c *copying) restore(ctx context.Context, op *opening, f *file, dir string) error {
	h, err := f.readHeader(roleLog)
	if err != nil {
		return err
	}
	op.id, op.log, op.projected = h.id, f, 1
	last, err := op.logEnd()
	if err != nil {
		return err
	}
	id, err := newStoreID()
	if err != nil {
		return err
	}
	c.result.ID = id.String()
	if err := c.restoreSubscriptions(ctx, op, &h, dir, id); err != nil {
		return err
	}
	if err := c.copyLog(ctx, op.Store, dir, id, h.descriptor, last); err != nil {
		return err
	}
	s, err := OpenExisting(ctx, dir, Options{Progress: func(p Progress) {
		c.o.Progress(CopyProgress{Phase: "rebuild " + stateFileName, Done: p.Done, Total: p.Total})
	}})
	if err != nil {
		return err
	}
	return s.Close(context.WithoutCancel(ctx))
}
