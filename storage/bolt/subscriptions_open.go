package bolt

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// nothingElse makes sure that no other file of a store is there without its log.
func (op *opening) nothingElse() error {
	for _, name := range []string{walFileName, stateFileName, subscriptionsFileName} {
		there, err := op.directory.presentAs(name)
		if err != nil {
			return err
		}
		if there {
			return &storage.DamagedError{
				Where: "file " + op.path(logFileName),
				Cause: fmt.Errorf("%w, and there is a %s", errMissing, name),
			}
		}
	}
	return nil
}

// inspectSubscriptions reads the header of subscriptions.db, if it is there. The descriptor
// in it is that of the day on which it was made.
func (op *opening) inspectSubscriptions() (there bool, err error) {
	path := op.path(subscriptionsFileName)
	if there, err = op.directory.presentWhole(subscriptionsFileName); err != nil || !there {
		return false, err
	}
	h, err := op.inspect(roleSubscriptions)
	if err != nil {
		return true, err
	}
	if h.format < subscriptionsFormat {
		op.subscriptions.old = &h
	}
	if h.id != op.id {
		return true, fmt.Errorf("%w: %s is of store %v, %s of store %v", storage.ErrForeign, path, h.id, logFileName, op.id)
	}
	if err := op.descriptor.Extends(&h.descriptor); err != nil {
		return true, fmt.Errorf("%w: %s: %w", storage.ErrForeign, path, err)
	}
	return true, nil
}

// openSubscriptions opens the file that was found right.
func (op *opening) openSubscriptions() error {
	f, err := op.openAgain(roleSubscriptions)
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
	var faults error
	fault := func(where, text string) {
		if faults == nil {
			faults = &storage.DamagedError{Where: where, Cause: errors.New(text)}
		}
	}
	err := f.checkPages(ctx, fault, func(uint64, uint64) {})
	return errors.Join(err, faults)
}

// makeSubscriptions makes the file, or opens one that an attempt before has left.
func (op *opening) makeSubscriptions() (*file, error) {
	if err := op.hasLog(); err != nil {
		return nil, err
	}
	there, err := op.directory.present(subscriptionsFileName)
	if err != nil {
		return nil, err
	}
	if there {
		return op.openAgain(roleSubscriptions)
	}
	f, err := op.create(roleSubscriptions)
	if err != nil && lacksSpace(err) && !errors.Is(err, messages.ErrOutcomeUnknown) {
		err = fmt.Errorf("%w: %w", storage.ErrFull, err)
	}
	return f, err
}

// beginFile writes what a new file has beside its header.
func beginFile(r role, tx *bbolt.Tx) error {
	if r != roleSubscriptions {
		return nil
	}
	c := countChange(0)
	return tx.Bucket(c.bucket).Put(c.key, c.value)
}
