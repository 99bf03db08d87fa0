package bolt

import "go.etcd.io/bbolt"

// upgrade makes a store of an older format one of the current format: log.db first,
// so that from the first change on older programs refuse the store. Nothing else of
// it has changed by then.
//
// Format 2 has deduplication ids. What was written in format 1 has none, so their
// projection begins empty.
func (op *opening) upgrade() error {
	if op.options.ReadOnly {
		return nil
	}
	if op.oldLog != nil {
		if err := op.log.upgrade(op.oldLog); err != nil {
			return err
		}
	}
	if op.oldState != nil {
		return op.state.upgrade(op.oldState)
	}
	return nil
}

// upgrade writes a file's header in the current format, and the buckets that came
// with it.
func (f *file) upgrade(h *header) error {
	return f.update(func(tx *bbolt.Tx) error {
		for _, name := range h.role.buckets(formatVersion) {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketHeader).Put(keyHeader, h.encode())
	})
}
