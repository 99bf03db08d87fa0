package logdb

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
	"github.com/partita-go/partita/storage/replog"
)

// A replicated log may take the place of log.wal: what it has accepted is durable elsewhere, and pending here until log.db
// has it. Then log.db says up to where, and the replicated log may forget it.

// Entry is an accepted entry of a replicated log.
type Entry struct {
	At replog.Position
	format.Entry
}

// Replicate lets entries be taken, in place of Append, before Start. trim is told up to which index log.db has them.
func (l *Log) Replicate(trim func(index uint64)) { l.trim = trim }

// Take takes the next entry. It waits for room.
func (l *Log) Take(e *Entry) error {
	if now := l.pending.state(); now.failed != nil {
		// There may be space by now.
		if err := l.AwaitApplied(context.Background(), now.next); err != nil {
			return err
		}
	}
	if err := l.awaitMemory(wal.Size(e.Values)); err != nil {
		return err
	}
	l.applier.added(l.pending.pushEntry(e))
	return nil
}

// AwaitOwn waits until this directory alone has an LSN on the disk: what else is on it must not be ahead of that.
func (l *Log) AwaitOwn(lsn messages.LSN) error {
	if l.trim == nil {
		return nil // log.wal has it
	}
	return l.AwaitApplied(context.Background(), lsn)
}

// put brings to log.db what was taken, and says there up to where it has a replicated log.
func (t *taken) put(tx *bbolt.Tx) error {
	if len(t.values) > 0 {
		if err := Put(tx, t.first, t.values); err != nil {
			return err
		}
	}
	for i := range t.entries {
		for _, e := range t.entries[i].epochs {
			if err := putEpoch(tx.Bucket(format.BucketEpochs), e); err != nil {
				return err
			}
		}
	}
	if n := len(t.entries); n > 0 {
		return tx.Bucket(format.BucketHeader).Put(format.KeyReplica, format.EncodePosition(t.entries[n-1].at))
	}
	return nil
}

// loadPosition reads up to where log.db has a replicated log.
func (l *Log) loadPosition(tx *bbolt.Tx) (err error) {
	v := tx.Bucket(format.BucketHeader).Get(format.KeyReplica)
	if v == nil {
		return nil
	}
	if l.Position, err = format.DecodePosition(v); err != nil {
		return &storage.DamagedError{Where: l.File.PlaceOf(format.BucketHeader, "%s", format.KeyReplica), Cause: err}
	}
	return nil
}
