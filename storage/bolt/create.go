package bolt

import (
	"errors"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// create makes a file with its header and buckets. It is made under another name
// and takes its own only when it is complete and synced, so that a crash leaves
// either nothing or a file that opens. It never replaces a file.
//
// An empty file under the name is taken as it is: nothing can be lost in it, and
// it cannot be replaced safely.
func (op *opening) create(r format.Role) (*boltfile.File, error) {
	d, final := op.directory, r.FileName()
	if _, err := d.Stat(final); err == nil {
		f, err := op.initialise(final, r)
		if err != nil {
			return nil, err
		}
		return f, nil
	}
	temporary, err := d.ReserveName(final + boltfile.NewFilePrefix)
	if err != nil {
		return nil, err
	}
	f, err := op.initialise(temporary, r)
	if err != nil {
		return nil, errors.Join(err, d.Remove(temporary))
	}
	if err := errors.Join(d.Publish(temporary, final), d.Sync()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// initialise writes header and buckets into an empty file.
func (op *opening) initialise(name string, r format.Role) (*boltfile.File, error) {
	f, err := boltfile.OpenFile(op.directory, name, op.path(r.FileName()), op.bboltOptions(r, false))
	if err != nil {
		return nil, err
	}
	h := format.Header{Role: r, ID: op.id, Descriptor: op.descriptor}
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
