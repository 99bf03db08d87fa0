package bolt

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

// nothingElse makes sure that no other file of a store is there without its log.
func (op *opening) nothingElse() error {
	for _, name := range []string{format.WALFileName, format.StateFileName, format.SubscriptionsFileName} {
		there, err := op.directory.PresentAs(name)
		if err != nil {
			return err
		}
		if there {
			return &storage.DamagedError{
				Where: "file " + op.path(format.LogFileName),
				Cause: fmt.Errorf("%w, and there is a %s", format.ErrMissing, name),
			}
		}
	}
	return nil
}

// inspectSubscriptions reads the header of subscriptions.db, if it is there. The descriptor
// in it is that of the day on which it was made.
func (op *opening) inspectSubscriptions() (there bool, err error) {
	path := op.path(format.SubscriptionsFileName)
	if there, err = op.directory.PresentWhole(format.SubscriptionsFileName); err != nil || !there {
		return false, err
	}
	h, err := op.inspect(format.RoleSubscriptions)
	if err != nil {
		return true, err
	}
	if h.Format < format.SubscriptionsFormat {
		op.subscriptions.old = &h
	}
	if h.ID != op.id {
		return true, fmt.Errorf("%w: %s is of store %v, %s of store %v", storage.ErrForeign, path, h.ID, format.LogFileName, op.id)
	}
	if err := op.descriptor.Extends(&h.Descriptor); err != nil {
		return true, fmt.Errorf("%w: %s: %w", storage.ErrForeign, path, err)
	}
	return true, nil
}

// openSubscriptions opens the file that was found right.
func (op *opening) openSubscriptions() error {
	f, err := op.openAgain(format.RoleSubscriptions)
	if err == nil {
		op.subscriptions.file.Store(f)
	}
	return err
}

// checkSubscriptions checks the pages of the file. What a damaged page hides would be
// delivered again from the beginning; and the file is small.
func (op *opening) checkSubscriptions(ctx context.Context) error {
	f := op.subscriptions.file.Load()
	if f == nil {
		return nil
	}
	return f.CheckPages(ctx, nil, nil)
}

// makeSubscriptions makes the file, or opens one that an attempt before has left.
func (op *opening) makeSubscriptions() (*boltfile.File, error) {
	if err := op.hasLog(); err != nil {
		return nil, err
	}
	there, err := op.directory.Present(format.SubscriptionsFileName)
	if err != nil {
		return nil, err
	}
	if there {
		return op.openAgain(format.RoleSubscriptions)
	}
	f, err := op.create(format.RoleSubscriptions)
	if err != nil && boltfile.LacksSpace(err) && !errors.Is(err, messages.ErrOutcomeUnknown) {
		err = fmt.Errorf("%w: %w", storage.ErrFull, err)
	}
	return f, err
}

// beginFile writes what a new file has beside its header.
func beginFile(r format.Role, tx *bbolt.Tx) error {
	if r != format.RoleSubscriptions {
		return nil
	}
	c := subsdb.CountChange(0)
	return tx.Bucket(c.Bucket).Put(c.Key, c.Value)
}
