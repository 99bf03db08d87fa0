package bolt

import (
	"bytes"
	"errors"
	"os"

	"go.etcd.io/bbolt"
)

// What was read at an open may not be on the disk: whoever wrote it was killed before its sync, or the
// sync has failed, and no later one vouches for it then. A loss of power would take it back, while
// positions behind it, or projections of it, are durable. So it is written once more as it is, and synced,
// before anything is derived of it. A file system that needs room to write what is there already may have none:
// then it is synced, which is all that a store on a full disk can do.

// openToVouch opens a file for bbolt to read, with a handle that may write: one of its own would take the lock
// away, where locks are the process's, when it is closed.
func openToVouch(d *directory, name string, o *bbolt.Options) (*file, error) {
	return openFileBy(d, name, d.join(name), o, func(name string, _ int, mode os.FileMode) (*os.File, error) {
		handle, err := d.openFile(name, os.O_RDWR, mode)
		if err != nil {
			return nil, err
		}
		info, err := handle.Stat()
		if err == nil && info.Size() == 0 { // bbolt would begin a file
			err = (&file{name: d.join(name)}).damaged(errTruncated)
		}
		if err != nil {
			return nil, errors.Join(err, handle.Close())
		}
		return handle, nil
	})
}

// vouch does that for log.db; if only subscriptions will be written, before the first of them is.
func (op *opening) vouch() error {
	switch {
	case !op.options.ReadOnly:
		return op.vouchLog()
	case op.options.KeepSubscriptions:
		op.subscriptions.vouch = func() error { return errors.Join(op.vouchLog(), op.vouchWAL()) }
	}
	return nil
}

// vouchLog fails if log.db is not as it was read any more: the system may have dropped what the disk has not.
func (op *opening) vouchLog() error {
	f := op.log
	if f.vouched {
		return nil
	}
	written := f.writeMeta(op.logCommit)
	err := syncWritten(written, f.handle.Sync)
	f.vouched = written == nil && err == nil
	return err
}

// vouchWAL does it for a log.wal that stays: log.db has no room for what is in it, or must not be
// written.
func (op *opening) vouchWAL() error {
	if op.leftWAL == nil {
		return nil
	}
	handle, err := op.directory.openFile(walFileName, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := handle.Stat()
	if err == nil {
		err = op.directory.compare(walFileName, info, op.wal.stale)
	}
	if err == nil {
		err = syncWritten(writeBlocks(handle, op.leftWAL), handle.Sync)
	}
	return errors.Join(err, handle.Close())
}

// syncWritten syncs what was written, or could not be for want of space.
func syncWritten(written error, sync func() error) error {
	if written != nil && !lacksSpace(written) {
		return written
	}
	return sync()
}

// writeBlocks writes all blocks but those of zeroes: nobody has written those, and a file system that keeps none may
// have no room for them.
func writeBlocks(handle *os.File, b []byte) error {
	for at := 0; at < len(b); {
		end := at
		for end < len(b) && !isZero(b[end:min(end+walBlockLen, len(b))]) {
			end = min(end+walBlockLen, len(b))
		}
		if end > at {
			if _, err := handle.WriteAt(b[at:end], int64(at)); err != nil {
				return err
			}
		}
		at = end + walBlockLen
	}
	return nil
}

func isZero(b []byte) bool { return bytes.Count(b, []byte{0}) == len(b) }
