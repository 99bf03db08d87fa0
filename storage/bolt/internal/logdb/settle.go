package logdb

import (
	"context"
	"errors"
	"os"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// What was read at an open may not be on the disk: whoever wrote it was killed before its sync, or the
// sync has failed, and no later one vouches for it then. A loss of power would take it back, while
// positions behind it, or projections of it, are durable. So it is written once more as it is, and synced,
// before anything is derived of it. A file system that needs room to write what is there already may have none:
// then it is synced, which is all that a store on a full disk can do.

// Vouch fails if log.db is not as it was read any more: the system may have dropped what the disk has not.
func (l *Log) Vouch() error {
	f := l.File
	if l.File.DB.IsReadOnly() || f.Vouched {
		return nil
	}
	written := f.WriteMeta(l.commit)
	err := wal.SyncWritten(written, f.Handle.Sync)
	f.Vouched = written == nil && err == nil
	return err
}

// vouchWAL does it for a log.wal that stays, since log.db has no room for what is in it.
func (l *Log) vouchWAL() error {
	handle, err := l.WAL.Directory.OpenFile(format.WALFileName, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := handle.Stat()
	if err == nil {
		err = l.WAL.Directory.Compare(format.WALFileName, info, l.WAL.Stale)
	}
	if err == nil {
		err = wal.SyncWritten(wal.WriteBlocks(handle, l.left.B), handle.Sync)
	}
	return errors.Join(err, handle.Close())
}

// Settle brings to log.db what log.wal alone has. Without space it stays pending where it is. What both have is on the
// disk in log.db: bbolt writes a meta page when a sync of all that it refers to has succeeded, so a sync that failed, or
// never ended, leaves nothing in doubt but that page, for which Vouch has vouched.
//
// log.wal stays until somebody appends, or closes the log: to forget it takes four syncs, and nobody waits for that yet.
func (l *Log) Settle() error {
	if l.left == nil {
		return nil
	}
	err := l.applyAll()
	if errors.Is(err, storage.ErrFull) {
		err = l.vouchWAL()
	}
	l.left.B = nil // it is large
	return err
}

// endWAL brings what is left to log.db, and removes log.wal. If log.db cannot take it, it
// stays for the next open.
func (l *Log) endWAL() error {
	if l.applier == nil {
		return nil
	}
	close(l.applier.stop)
	<-l.applier.ended
	if l.WAL.File == nil && l.left == nil {
		return nil
	}
	if _, values := l.Pending(); len(values) > 0 {
		return nil
	}
	if err := l.forgetWAL(); err != nil {
		return nil //nolint:nilerr // it stays for the next open, and nothing is lost
	}
	return l.WAL.Remove()
}

// removeLeft removes the log.wal that a crash has left, as soon as log.db has the last LSN. An error says that it must
// stay.
func (l *Log) removeLeft(last messages.LSN) error {
	if l.left == nil {
		return nil
	}
	if err := l.AwaitApplied(context.Background(), last); err != nil {
		return err
	}
	if err := l.forgetWAL(); err != nil {
		return err
	}
	if err := l.WAL.Unlink(); err != nil {
		return err
	}
	l.left = nil
	return nil
}

// forgetWAL notes in log.db that it has everything, in both of its meta pages: it may be
// repaired by either. An error says that log.wal must stay.
func (l *Log) forgetWAL() error {
	for range boltfile.MetaPages {
		err := l.File.Update(func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketHeader).Delete(format.KeyWAL) })
		if err != nil {
			return err
		}
	}
	return nil
}
