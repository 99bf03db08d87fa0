package logdb

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
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

// Replicate lets entries be taken, in place of Append, before Start. kept says up to where, but not beyond an entry, the
// directory's other files have what entries say to them; trim is told up to which index the directory has all of it.
func (l *Log) Replicate(trim func(index uint64), kept func(to replog.Position) replog.Position) {
	l.trim, l.kept = trim, kept
}

// Take takes the next entry. It waits until there is room for it in memory: for what log.db has not yet.
func (l *Log) Take(e *Entry, memory int64) error {
	if now := l.pending.state(); now.failed != nil {
		// There may be space by now.
		if err := l.AwaitApplied(context.Background(), now.next); err != nil {
			return err
		}
	}
	if err := l.awaitMemory(wal.Size(e.Values), memory); err != nil {
		return err
	}
	l.applier.added(l.pending.pushEntry(e))
	return nil
}

// Taken returns the head of the last entry that was taken.
func (l *Log) Taken() uint64 {
	l.pending.mu.Lock()
	defer l.pending.mu.Unlock()
	return l.pending.taken
}

// AwaitEntry waits until log.db has the entries of a replicated log up to a head, or could not be given them.
func (l *Log) AwaitEntry(ctx context.Context, head uint64) error {
	return l.await(ctx, func(now *applied) bool { return now.head >= head })
}

// AwaitOwn waits until this directory alone has an LSN on the disk: what else is on it must not be ahead of that.
func (l *Log) AwaitOwn(lsn messages.LSN) error {
	if l.trim == nil {
		return nil // log.wal has it
	}
	return l.AwaitApplied(context.Background(), lsn)
}

// put brings to log.db what was taken, and says there up to where it has a replicated log.
func (l *Log) put(tx *bbolt.Tx, t *taken) error {
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
	n := len(t.entries)
	if n == 0 {
		return nil
	}
	at := t.entries[n-1].at
	t.kept = l.kept(at)
	if l.ids.Load() {
		if err := PutIDs(tx, at.Head); err != nil {
			return err
		}
	}
	return PutPosition(tx, at, t.kept)
}

// HasIDs reports whether there must be an ids.db: a replica that makes another one gives numbers that others have.
func (l *Log) HasIDs() bool { return l.ids.Load() }

// NoteIDs says that there is an ids.db, if a replicated log has what stands in it. log.db knows with the next entry: until then
// it has none with a number, and they come again.
func (l *Log) NoteIDs() { l.ids.Store(l.trim != nil || l.ids.Load()) }

// PutIDs says in log.db that there is an ids.db, and which head it had when it was told first.
func PutIDs(tx *bbolt.Tx, head uint64) error {
	header := tx.Bucket(format.BucketHeader)
	if header.Get(format.KeyIDs) != nil {
		return nil
	}
	return header.Put(format.KeyIDs, format.SealedUint(nil, format.BucketHeader, format.KeyIDs, head))
}

// loadIDs reads whether there must be an ids.db.
func (l *Log) loadIDs(tx *bbolt.Tx) error {
	v := tx.Bucket(format.BucketHeader).Get(format.KeyIDs)
	if v == nil {
		return nil
	}
	l.ids.Store(true)
	if _, err := format.UnsealUint(format.BucketHeader, format.KeyIDs, v); err != nil {
		return &storage.DamagedError{Where: l.File.PlaceOf(format.BucketHeader, "%s", format.KeyIDs), Cause: err}
	}
	return nil
}

// PutPosition says up to where log.db has a replicated log, and up to where all of the directory has it, which is not
// further.
func PutPosition(tx *bbolt.Tx, at, kept replog.Position) error {
	header := tx.Bucket(format.BucketHeader)
	if err := header.Put(format.KeyReplica, format.EncodePosition(format.KeyReplica, at)); err != nil {
		return err
	}
	if kept == at {
		return header.Delete(format.KeyKept)
	}
	return header.Put(format.KeyKept, format.EncodePosition(format.KeyKept, kept))
}

// Tail is the end of log.db as of one moment.
type Tail struct {
	// At is up to where log.db has a replicated log, Last its last LSN.
	At   replog.Position
	Last messages.LSN
	// Events are those behind what was asked for, Epochs are all.
	Events, Epochs boltfile.Entries
}

// ReadTail reads the end of log.db, with the events from an LSN on. Those are in memory at once.
func (l *Log) ReadTail(from messages.LSN) (t Tail, err error) {
	err = l.File.View(func(tx *bbolt.Tx) (err error) {
		if t.At, err = l.positionAt(tx, format.KeyReplica, replog.Position{}); err != nil {
			return err
		}
		c := tx.Bucket(format.BucketLog).Cursor()
		if k, _ := c.Last(); k != nil {
			t.Last, _ = format.ParseLSN(k)
		}
		for k, v := c.Seek(format.AppendLSNKey(nil, from)); k != nil; k, v = c.Next() {
			t.Events.Add(k, v)
		}
		return tx.Bucket(format.BucketEpochs).ForEach(func(k, v []byte) error {
			t.Epochs.Add(k, v)
			return nil
		})
	})
	return t, err
}

// loadPosition reads up to where the directory has a replicated log.
func (l *Log) loadPosition(tx *bbolt.Tx) (err error) {
	if l.Position, err = l.positionAt(tx, format.KeyReplica, replog.Position{}); err == nil {
		l.Kept, err = l.positionAt(tx, format.KeyKept, l.Position)
	}
	l.pending.head, l.pending.taken = l.Position.Head, l.Position.Head
	return err
}

// positionAt reads a position that stands under a key of the header, or is another one if nothing does.
func (l *Log) positionAt(tx *bbolt.Tx, key []byte, other replog.Position) (replog.Position, error) {
	v := tx.Bucket(format.BucketHeader).Get(key)
	if v == nil {
		return other, nil
	}
	at, err := format.DecodePosition(key, v)
	if err != nil {
		err = &storage.DamagedError{Where: l.File.PlaceOf(format.BucketHeader, "%s", key), Cause: err}
	}
	return at, err
}
