package boltfile

import (
	"errors"

	"go.etcd.io/bbolt"
)

// Entries are copied entries of a bucket.
type Entries struct {
	Keys, values [][]byte
	arena        ByteArena
	Bytes        int
}

// Add copies an entry.
func (e *Entries) Add(k, v []byte) {
	key := append(e.arena.Reserve(len(k)), k...)
	value := append(e.arena.Reserve(len(v)), v...)
	e.Keys, e.values = append(e.Keys, key), append(e.values, value)
	e.Bytes += len(k) + len(v)
}

// Each calls fn with each entry, in their order.
func (e *Entries) Each(fn func(k, v []byte)) {
	for i, k := range e.Keys {
		fn(k, e.values[i])
	}
}

// Full reports whether the entries are enough for a transaction.
func (e *Entries) Full() bool { return len(e.Keys) >= CopyChunkEntries || e.Bytes >= copyChunkBytes }

// Limits of what is copied in one transaction.
const (
	CopyChunkEntries = 65_536
	copyChunkBytes   = 8 << 20
)

// Put writes entries behind those that are there.
func (f *File) Put(bucket []byte, fill float64, e *Entries) error {
	return f.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		b.FillPercent = fill
		for i, k := range e.Keys {
			if err := b.Put(k, e.values[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// CloseCopy cuts off what bbolt has allocated ahead, makes the file durable unless it
// has failed already, and closes it.
func (f *File) CloseCopy(err error) error {
	if err == nil {
		err = f.View(func(tx *bbolt.Tx) error { return f.Handle.Truncate(tx.Size()) })
	}
	if err == nil {
		err = f.DB.Sync()
	}
	return errors.Join(err, f.Close())
}
