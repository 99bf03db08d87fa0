package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
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
	op := newReading()
	err := op.holdLog(from)
	if err == nil {
		err = c.into(ctx, to, func(temporary *boltfile.Directory) error { return c.restore(ctx, op, temporary) })
	}
	return c.result, errors.Join(err, op.abandon())
}

// newReading is for who only reads the files of a store.
func newReading() *opening {
	return &opening{Store: &Store{options: Options{ReadOnly: true}.WithDefaults()}}
}

// holdLog opens a directory and the log.db in it.
func (op *opening) holdLog(dir string) error {
	if err := op.holdDirectory(dir); err != nil {
		return err
	}
	there, err := op.directory.Present(format.LogFileName)
	if err == nil && !there {
		err = fmt.Errorf("%w: %s", storage.ErrNotFound, op.path(format.LogFileName))
	}
	if err == nil {
		err = op.openLogToRead()
	}
	return err
}

// openLogToRead opens a log.db of which nothing is known yet.
func (op *opening) openLogToRead() error {
	f, err := op.openFile(format.RoleLog, true)
	if err == nil {
		op.log = logdb.New(f, op.directory)
	}
	return err
}

// readLogEnd reads the header of log.db, and with log.wal where the log ends.
func (op *opening) readLogEnd() (h format.Header, err error) {
	if h, err = op.log.File.ReadHeader(format.RoleLog); err != nil {
		return h, err
	}
	op.id, op.descriptor, op.projected = h.ID, h.Descriptor, 1
	return h, op.loadEnd()
}

// askState asks the state.db beside a log, if there is one, whether it is of this log, and the log is whole. unread
// says why it could not be asked.
func (op *opening) askState() (unread, err error) {
	path := op.path(format.StateFileName)
	there, err := op.directory.PresentWhole(format.StateFileName)
	if err == nil && there {
		err = op.compareState()
	}
	switch {
	case err == nil, errors.Is(err, storage.ErrLocked):
		return nil, err
	case errors.Is(err, errLostEnd), errors.Is(err, errOtherLog):
		return nil, fmt.Errorf("%w; whoever knows that %s is the wrong file moves it away", err, path)
	case errors.Is(err, storage.ErrDamaged), errors.Is(err, storage.ErrForeign), errors.Is(err, storage.ErrFormat):
		return err, nil
	}
	return nil, fmt.Errorf("%w; without %s nobody asks whether %s is whole", err, path, format.LogFileName)
}

// compareState compares state.db with the log.
func (op *opening) compareState() error {
	h, err := op.openState()
	if err == nil {
		op.makePartitions()
		if err = cmp.Or(op.knowsAll(&h), op.loadState()); err == nil {
			err = op.checkOrigin()
		}
	}
	if errors.Is(err, errOtherLog) {
		return err
	}
	return cmp.Or(op.checkEnd(), err)
}

// openState opens the state.db of this store to be read. An error says what is wrong with it.
func (op *opening) openState() (h format.Header, err error) {
	if op.state, err = op.openFile(format.RoleState, true); err != nil {
		return h, err
	}
	if h, err = op.state.ReadHeader(format.RoleState); err == nil {
		err = op.sameStore(&h)
	}
	return h, err
}

// checkEnd is checkProjected for a state.db of which not everything can be read. Nothing is
// asked of one that may be another store's, or that bbolt cannot read and end.
func (op *opening) checkEnd() error {
	if op.state == nil || !op.state.Ends() {
		return nil
	}
	if h, _ := op.state.Header(format.RoleState); h.ID != op.id {
		return nil
	}
	return op.endsBehind(op.stated())
}

func (c *copying) restore(ctx context.Context, op *opening, dir *boltfile.Directory) error {
	h, err := op.readLogEnd()
	if err != nil {
		return err
	}
	if c.result.StateUnread, err = op.askState(); err != nil {
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
	if err := c.copyLog(ctx, op.Store, dir, id, h.Descriptor, op.end); err != nil {
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
