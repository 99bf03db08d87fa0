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
//
// If state.db is there too, it is asked whether the log is the one that it was made from, and whole: a log that has
// lost its end would give its last numbers again. If it says no, that is a [*storage.DamagedError]; whoever
// knows that state.db is the wrong file moves it away. If it cannot be asked, since it is damaged, another
// store's, or newer than the log, [Copied.StateUnread] says why.
func Restore(ctx context.Context, from, to string, o CopyOptions) (Copied, error) {
	c := newCopying(o)
	op := &opening{Store: &Store{options: Options{ReadOnly: true}.WithDefaults()}, dir: from}
	if there, err := present(op.path(logFileName)); err != nil {
		return c.result, err
	} else if !there {
		return c.result, fmt.Errorf("%w: %s", storage.ErrNotFound, op.path(logFileName))
	}
	var err error
	if op.log, err = op.openFile(roleLog, true); err != nil {
		return c.result, err
	}
	err = c.into(ctx, to, func(temporary string) error { return c.restore(ctx, op, temporary) })
	return c.result, errors.Join(err, op.abandon())
}

// readLogEnd reads the header of log.db, and with log.wal where the log ends.
func (op *opening) readLogEnd() (h header, last messages.LSN, err error) {
	if h, err = op.log.readHeader(roleLog); err != nil {
		return h, 0, err
	}
	op.id, op.descriptor, op.projected = h.id, h.descriptor, 1
	last, err = op.logEnd()
	return h, last, err
}

// askState asks the state.db beside a log, if there is one, whether it is of this log, and the log is whole. unread
// says why it could not be asked.
func (op *opening) askState(ctx context.Context, end messages.LSN) (unread, err error) {
	path := op.path(stateFileName)
	there, err := presentWhole(path)
	if err == nil && there {
		err = op.compareState(end)
	}
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, storage.ErrLocked):
		return nil, firstError(ctx.Err(), err)
	case errors.Is(err, errLostEnd), errors.Is(err, errOtherLog):
		return nil, fmt.Errorf("%w; whoever knows that %s is the wrong file moves it away", err, path)
	}
	return err, nil
}

// compareState compares state.db with a log that ends at an LSN. That it is too short is told whatever else
// is wrong.
func (op *opening) compareState(end messages.LSN) error {
	h, err := op.openState()
	if err != nil {
		return err
	}
	op.makePartitions()
	if err = firstError(op.knowsAll(&h), op.loadState()); err == nil {
		err = op.checkOrigin(end)
	}
	return firstError(op.checkProjected(end), err)
}

// openState opens the state.db of this store to be read.
func (op *opening) openState() (h header, err error) {
	h, err = op.inspect(roleState)
	if err == nil {
		err = op.sameStore(&h)
	}
	if err == nil {
		op.state, err = op.openAgain(roleState)
	}
	return h, err
}

func (c *copying) restore(ctx context.Context, op *opening, dir string) error {
	h, last, err := op.readLogEnd()
	if err != nil {
		return err
	}
	if c.result.StateUnread, err = op.askState(ctx, last); err != nil {
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
