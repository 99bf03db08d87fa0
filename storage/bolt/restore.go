package bolt

import (
	"context"
	"errors"

	"github.com/partita-go/partita/storage/bolt/internal/files"

	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Restore makes a store of a copy: log.db with a new store id, and state.db rebuilt from
// it, since the index of deduplication ids in it depends on the store's id. Of the copy
// only log.db is needed, and log.wal if it has one; it is not changed; its subscriptions are carried over if
// subscriptions.db is there too: a damaged one is an error, and goes on being one until it is taken away. The
// directory must be new or empty. What is not finished, or has a fault, is not kept.
//
// If state.db is there too, it is asked whether the log is the one that it was made from, and whole: a log that has
// lost its end would give its last numbers again. If it says no, that is a [*storage.DamagedError]; whoever
// knows that state.db is the wrong file moves it away. If it cannot be asked, since it is damaged, another
// store's, or newer than the log, [Copied.StateUnread] says why; that the system cannot read it is an error.
func Restore(ctx context.Context, from, to string, o CopyOptions) (Copied, error) {
	c := newCopying(o)
	f, err := files.HoldLog(from, reading())
	if err != nil {
		return c.result, err
	}
	err = c.into(ctx, to, func(temporary *boltfile.Directory) error { return c.restore(ctx, f, temporary) })
	return c.result, errors.Join(err, f.Close())
}

func (c *copying) restore(ctx context.Context, from *files.Set, dir *boltfile.Directory) error {
	if err := from.ReadLog(); err != nil {
		return err
	}
	var err error
	if c.result.StateUnread, err = from.AskState(); err != nil {
		return err
	}
	id, err := newStoreID()
	if err != nil {
		return err
	}
	c.result.ID = id.String()
	if err := c.restoreSubscriptions(ctx, from, dir, id); err != nil {
		return err
	}
	if err := c.copyLog(ctx, from.Log, dir, id, from.Descriptor, from.End); err != nil {
		return err
	}
	s, err := OpenExisting(ctx, dir.Path, Options{TailEvents: c.o.TailEvents, Progress: func(p Progress) {
		c.o.Progress(CopyProgress{Phase: "rebuild " + format.StateFileName, Done: p.Done, Total: p.Total})
	}})
	if err != nil {
		return err
	}
	return errors.Join(s.checkOwnPositions(), s.Close(context.WithoutCancel(ctx)))
}
