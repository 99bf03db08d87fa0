package bolt

import (
	"bytes"
	"errors"
	"os"
)

// What was read at an open may not be on the disk: whoever wrote it was killed before its sync, or the
// sync has failed, and no later one vouches for it then. A loss of power would take it back, while
// positions behind it, or projections of it, are durable. So it is written once more as it is, and synced,
// before anything is derived of it. A file system that needs room to write what is there already may have none:
// then it is synced, which is all that a store on a full disk can do.

// vouchLog fails if log.db is not as it was read any more: the system may have dropped what the disk has not.
func (op *opening) vouchLog() error {
	f := op.log
	if op.options.ReadOnly || f.vouched {
		return nil
	}
	written := f.writeMeta(op.logCommit)
	err := syncWritten(written, f.handle.Sync)
	f.vouched = written == nil && err == nil
	return err
}

// vouchWAL does it for a log.wal that stays, since log.db has no room for what is in it.
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
