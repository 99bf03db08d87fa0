package logdb

import (
	"errors"
	"os"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// What was read at an open may not be on the disk: whoever wrote it was killed before its sync, or the
// sync has failed, and no later one vouches for it then. A loss of power would take it back, while
// positions behind it, or projections of it, are durable. So what may not be there is written once more as it is, and
// synced, before anything is derived of it: of log.db that is the newer meta page alone, and log.wal if its events do not
// go to log.db. A file system that needs room to write what is there already may have none: then it is synced, which is
// all that a store on a full disk can do.

// Vouch writes the newer meta page of log.db again. It fails if log.db is not as it was read any more: the system may have
// dropped what the disk has not.
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
		err = wal.SyncWritten(wal.WriteBlocks(handle, l.content), handle.Sync)
	}
	return errors.Join(err, handle.Close())
}

// Settle brings to log.db what log.wal alone has. Without space it stays pending where it is. What both have is on the
// disk in log.db: bbolt writes a meta page when a sync of all that it refers to has succeeded, so a sync that failed, or
// never ended, leaves nothing in doubt but that page, for which Vouch has vouched. That
// holds for a file whose commits bbolt has synced: one that is written without, as copies are, must not be opened before it
// is synced as a whole.
//
// log.wal stays: to forget it takes four syncs, and nobody waits for that yet. See [Log.Start].
func (l *Log) Settle() error {
	if !l.left {
		return nil
	}
	err := l.applyAll()
	if errors.Is(err, storage.ErrFull) {
		err = l.vouchWAL()
	}
	l.content = nil
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
	if l.WAL.File == nil && !l.left {
		return nil
	}
	if _, values := l.Pending(); len(values) > 0 {
		return nil
	}
	if err := l.forgetWAL(); err != nil {
		return nil //nolint:nilerr // it stays for the next open, and nothing is lost
	}
	return l.removeWAL()
}

// removeLeft removes the log.wal that a crash has left. log.db has what is in it. An error says that it must stay.
func (l *Log) removeLeft() error {
	l.removing.Lock()
	defer l.removing.Unlock()
	if !l.left {
		return nil
	}
	if err := l.forgetWAL(); err != nil {
		return err
	}
	if err := l.removeWAL(); err != nil {
		return err
	}
	l.left = false
	return nil
}

// removeWAL removes log.wal when log.db has everything, but not from beside another log.db, which may need it.
func (l *Log) removeWAL() error {
	if err := l.InPlace(); err != nil {
		return err
	}
	return l.WAL.Remove()
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
