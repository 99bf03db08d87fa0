package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
)

// What was read at an open may not be on the disk: whoever wrote it was killed before its sync, or the
// sync has failed, and no later one vouches for it then. A loss of power would take it back, while
// positions behind it, or projections of it, are durable. So it is written once more as it is, and synced,
// before anything is derived of it.

// vouch does that for log.db; if only subscriptions will be written, before the first of them is.
func (op *opening) vouch() error {
	switch {
	case !op.options.ReadOnly:
		return op.vouchLog(op.log.handle)
	case op.options.KeepSubscriptions:
		op.subscriptions.vouch = func() error {
			return errors.Join(withHandle(op.log.name, op.vouchLog), op.vouchWAL())
		}
	}
	return nil
}

func (op *opening) vouchLog(handle *os.File) error {
	if op.log.vouched {
		return nil
	}
	err := op.log.view(func(tx *bbolt.Tx) error { return op.log.rewriteMeta(handle, uint64(tx.ID())) })
	op.log.vouched = err == nil
	return fullIfLacking(op.log.name, err)
}

// vouchWAL does it for a log.wal that stays: log.db has no room for what is in it, or must not be
// written.
func (op *opening) vouchWAL() error {
	if op.leftWAL == nil {
		return nil
	}
	err := withHandle(op.wal.path, func(handle *os.File) error { return writeAgain(handle, op.leftWAL, 0) })
	return fullIfLacking(op.wal.path, err)
}

// withHandle lets do have a handle that may write.
func withHandle(path string, do func(*os.File) error) error {
	handle, err := os.OpenFile(filepath.Clean(path), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(handle), handle.Close())
}

// writeAgain writes what stands there already, and syncs the file.
func writeAgain(handle *os.File, b []byte, at int64) error {
	if _, err := handle.WriteAt(b, at); err != nil {
		return fmt.Errorf("write again: %w", err)
	}
	if err := handle.Sync(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

// fullIfLacking says what it means that there was no space.
func fullIfLacking(path string, err error) error {
	if err != nil && lacksSpace(err) {
		return fmt.Errorf("%w: %s: %w", storage.ErrFull, path, err)
	}
	return err
}
