package files

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/idsdb"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

// create makes a file with its header and buckets. It is made under another name
// and takes its own only when it is complete and synced, so that a crash leaves
// either nothing or a file that opens. It never replaces a file.
//
// An empty file under the name is taken as it is: nothing can be lost in it, and
// it cannot be replaced safely.
func (s *Set) create(r format.Role) (*boltfile.File, error) {
	d, final := s.Directory, r.FileName()
	if _, err := d.Stat(final); err == nil {
		f, err := s.initialise(final, r)
		if err != nil {
			return nil, err
		}
		return f, nil
	}
	temporary, err := d.ReserveName(final + boltfile.NewFilePrefix)
	if err != nil {
		return nil, err
	}
	f, err := s.initialise(temporary, r)
	if err != nil {
		return nil, errors.Join(err, d.Remove(temporary))
	}
	if err := errors.Join(d.Publish(temporary, final), d.Sync()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// initialise writes header and buckets into an empty file.
func (s *Set) initialise(name string, r format.Role) (*boltfile.File, error) {
	f, err := s.openAs(name, r, false)
	if err != nil {
		return nil, err
	}
	h := format.Header{Role: r, ID: s.ID, Descriptor: s.Descriptor}
	err = f.Update(func(tx *bbolt.Tx) error {
		for _, name := range r.Buckets() {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		if err := beginFile(r, tx); err != nil {
			return err
		}
		return tx.Bucket(format.BucketHeader).Put(format.KeyHeader, h.Encode())
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// NewFile makes a file of a store in a directory, with its header and buckets. What is written to it is durable when it
// was closed by CloseCopy, and not before: its commits are not synced. Whoever opens a store believes that all but the newest
// meta page of a file is on the disk, so that a file which was not closed so must never count as one of a store.
func NewFile(
	d *boltfile.Directory, r format.Role, id format.StoreID, descriptor messages.Descriptor, o Options,
) (*boltfile.File, error) {
	s := &Set{options: o, Directory: d, ID: id, Descriptor: descriptor}
	f, err := s.initialise(r.FileName(), r)
	if err == nil {
		f.DB.NoSync = true
	}
	return f, err
}

// MakeSubscriptions makes subscriptions.db, or opens one that an attempt before has left.
func (s *Set) MakeSubscriptions() (*boltfile.File, error) {
	if err := s.Log.InPlace(); err != nil {
		return nil, err
	}
	there, err := s.Directory.Present(format.SubscriptionsFileName)
	if err != nil {
		return nil, err
	}
	if there {
		return s.openAgain(format.RoleSubscriptions)
	}
	return s.createLate(format.RoleSubscriptions)
}

// createLate makes a file of a store that is in use. It says so if there is no space for it.
func (s *Set) createLate(r format.Role) (*boltfile.File, error) {
	f, err := s.create(r)
	if err != nil && boltfile.LacksSpace(err) && !errors.Is(err, messages.ErrOutcomeUnknown) {
		err = fmt.Errorf("%w: %w", storage.ErrFull, err)
	}
	return f, err
}

// beginFile writes what a new file has beside its header.
func beginFile(r format.Role, tx *bbolt.Tx) error {
	switch r {
	case format.RoleSubscriptions:
		c := subsdb.CountChange(0)
		return tx.Bucket(c.Bucket).Put(c.Key, c.Value)
	case format.RoleIDs:
		return idsdb.PutCount(tx, 0)
	case format.RoleLog, format.RoleState:
	}
	return nil
}
