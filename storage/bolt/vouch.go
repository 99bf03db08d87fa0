package bolt

import (
	"errors"
	"os"

	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// What was read at an open may not be on the disk: whoever wrote it was killed before its sync, or the
// sync has failed, and no later one vouches for it then. A loss of power would take it back, while
// positions behind it, or projections of it, are durable. So it is written once more as it is, and synced,
// before anything is derived of it. A file system that needs room to write what is there already may have none:
// then it is synced, which is all that a store on a full disk can do.

// vouchLog fails if log.db is not as it was read any more: the system may have dropped what the disk has not.
func (op *opening) vouchLog() error {
	f := op.log
	if op.options.ReadOnly || f.Vouched {
		return nil
	}
	written := f.WriteMeta(op.logCommit)
	err := wal.SyncWritten(written, f.Handle.Sync)
	f.Vouched = written == nil && err == nil
	return err
}

// vouchWAL does it for a log.wal that stays, since log.db has no room for what is in it.
func (op *opening) vouchWAL() error {
	if op.leftWAL == nil {
		return nil
	}
	handle, err := op.directory.OpenFile(format.WALFileName, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := handle.Stat()
	if err == nil {
		err = op.directory.Compare(format.WALFileName, info, op.wal.Stale)
	}
	if err == nil {
		err = wal.SyncWritten(wal.WriteBlocks(handle, op.leftWAL), handle.Sync)
	}
	return errors.Join(err, handle.Close())
}
