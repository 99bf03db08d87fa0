package bolt

import (
	"context"
	"errors"
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Restore makes a store of a copy: log.db with a new store id, and state.db rebuilt from
// it, since the index of deduplication ids in it depends on the store's id. Of the copy
// only log.db is needed, and log.wal if it has one; it is not changed; its subscriptions are carried over if
// subscriptions.db is there too: a damaged one is an error, and goes on being one until it is taken away. The
// directory must be new or empty. What is not finished, or has a fault, is not kept.
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

// readLogEnd reads the header of log.db, and with log.wal where the log ends.
func (op *opening) readLogEnd(f *file) (h header, last messages.LSN, err error) {
	if h, err = f.readHeader(roleLog); err != nil {
		return h, 0, err
	}
	op.id, op.log, op.projected = h.id, f, 1
	last, err = op.logEnd()
	return h, last, err
}

func (c *copying) restore(ctx context.Context, op *opening, f *file, dir string) error {
	h, last, err := op.readLogEnd(f)
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
	s, err := OpenExisting(ctx, dir, Options{TailEvents: c.o.TailEvents, Progress: func(p Progress) {
		c.o.Progress(CopyProgress{Phase: "rebuild " + stateFileName, Done: p.Done, Total: p.Total})
	}})
	if err != nil {
		return err
	}
	return s.Close(context.WithoutCancel(ctx))
}
