package logdb

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// Epoch is the current epoch of a partition.
type Epoch = format.Epoch

// Append makes durable the events behind the last LSN, and epochs: in log.wal, or in log.db if that must have them at
// once. Its error means that nothing was written, but for [messages.ErrOutcomeUnknown].
func (l *Log) Append(last messages.LSN, values [][]byte, epochs []Epoch) error {
	size := wal.Size(values)
	if len(epochs) > 0 || size > l.WAL.Half {
		return l.writeDB(last, values, epochs)
	}
	return l.writeAhead(last, size, values)
}

// Busy returns nil if Append would not wait for room in log.wal, or would do so in vain. Otherwise it returns what is
// closed when log.db has more of what stands there.
func (l *Log) Busy(last messages.LSN, values [][]byte) <-chan struct{} {
	now := l.pending.state()
	if l.trim != nil || now.failed != nil || l.WAL.IsFree(wal.Size(values), now.next-1, last) {
		return nil
	}
	l.applier.hurry()
	return now.more
}

// writeDB writes to log.db. Epochs alone do not wait for what is pending: they may be newer
// than the log, and must be taken although log.db has no room for events.
func (l *Log) writeDB(last messages.LSN, values [][]byte, epochs []Epoch) error {
	if len(values) > 0 {
		if err := l.AwaitApplied(context.Background(), last); err != nil {
			return err
		}
	}
	applied := l.pending.state().next - 1
	err := l.File.Update(func(tx *bbolt.Tx) error {
		for _, e := range epochs {
			if err := putEpoch(tx.Bucket(format.BucketEpochs), e); err != nil {
				return err
			}
		}
		if len(values) == 0 {
			return checkEnd(tx.Bucket(format.BucketLog), applied, last, nil)
		}
		return Put(tx, last+1, values)
	})
	if err == nil {
		l.pending.skip(len(values))
	}
	return err
}

// awaitMemory waits until there is room for so many bytes more that log.db has not yet.
func (l *Log) awaitMemory(size, memory int64) error {
	// What waits may have no events: epochs take memory, too.
	return l.await(context.Background(), func(now *applied) bool { return now.bytes == 0 || now.bytes+size <= memory })
}

// Room waits until there is room for events behind the last LSN, and makes sure that their place in log.db is free.
func (l *Log) Room(last messages.LSN, values [][]byte) error {
	if len(values) > 0 {
		if l.pending.state().failed != nil {
			// There may be space by now.
			if err := l.AwaitApplied(context.Background(), last); err != nil {
				return err
			}
		}
		if err := l.awaitMemory(wal.Size(values), l.Memory); err != nil {
			return err
		}
	}
	applied := l.pending.state()
	return l.File.View(func(tx *bbolt.Tx) error {
		return checkEnd(tx.Bucket(format.BucketLog), applied.next-1, last, values)
	})
}

// writeAhead writes to log.wal.
func (l *Log) writeAhead(last messages.LSN, size int64, values [][]byte) error {
	if err := l.Room(last, values); err != nil {
		return err
	}
	applied := l.pending.state()
	if err := l.beginWAL(last); err != nil {
		return err
	}
	if need := l.WAL.Place(size, applied.next-1, last); need != 0 {
		if err := l.AwaitApplied(context.Background(), need); err != nil {
			return err
		}
		l.WAL.Place(size, need, last)
	}
	if err := l.WAL.Write(size, last+1, values); err != nil {
		return err
	}
	l.applier.added(l.pending.push(values))
	return nil
}

// beginWAL makes log.wal, if there is none yet, and notes in log.db that there is one: it
// says so as long as it may lack something. last is the last LSN that is durable.
func (l *Log) beginWAL(last messages.LSN) error {
	if l.WAL.File != nil {
		return nil
	}
	// What a crash has left stays until log.db has it.
	if err := l.AwaitApplied(context.Background(), last); err != nil {
		return err
	}
	if err := l.removeLeft(); err != nil {
		return err
	}
	if err := l.InPlace(); err != nil {
		return err
	}
	if err := l.WAL.Create(); err != nil {
		if l.WAL.File != nil || boltfile.LacksSpace(err) {
			err = l.WAL.Failed(err)
		}
		return errors.Join(err, l.WAL.Remove())
	}
	err := l.File.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketHeader).Put(format.KeyWAL, sealWALID(l.WAL.ID))
	})
	if err != nil && !errors.Is(err, messages.ErrOutcomeUnknown) {
		return errors.Join(err, l.WAL.Remove())
	}
	// If log.db may say that there is one, there must be one.
	return err
}

func sealWALID(id wal.ID) []byte { return format.Seal(id[:], 0, format.BucketHeader, format.KeyWAL) }

func putEpoch(epochs *bbolt.Bucket, e Epoch) error {
	key := format.AppendPartitionKey(make([]byte, 0, format.PartitionKeyLen), e.Partition)
	return epochs.Put(key, format.SealedUint(nil, format.BucketEpochs, key, uint64(e.Epoch)))
}

// Put puts events at the end of the log. It overwrites nothing: the log must end before
// them. The bucket's sequence, which stands in another page than the log's last entries,
// says where it ends then.
func Put(tx *bbolt.Tx, first messages.LSN, values [][]byte) error {
	log := tx.Bucket(format.BucketLog)
	log.FillPercent = boltfile.LogFill
	if err := checkEnd(log, first-1, first-1, values); err != nil {
		return err
	}
	var key [format.LSNKeyLen]byte
	lsn := first
	for _, v := range values {
		if err := log.Put(format.AppendLSNKey(key[:0], lsn), v); err != nil {
			return err
		}
		lsn++
	}
	return log.SetSequence(uint64(lsn - 1))
}

// checkEnd makes sure that the log ends at an LSN from least to most, so that the next
// places are free. The values are those that would go there.
func checkEnd(log *bbolt.Bucket, least, most messages.LSN, values [][]byte) error {
	k, _ := log.Cursor().Last()
	if k == nil && least == 0 {
		return nil
	}
	end, ok := format.ParseLSN(k)
	switch {
	case ok && end >= least && end <= most:
		return nil
	case !ok || end < least:
		return &storage.DamagedError{
			Where: format.PlaceOf(format.BucketLog, "key %x", k),
			Cause: fmt.Errorf("the log ends there, want LSN %d", least),
		}
	}
	conflict := &storage.ConflictError{Place: storage.PlaceLog, LSN: end}
	var view format.EventView
	if len(values) > 0 && view.Decode(most+1, values[0]) == nil {
		conflict.Partition, conflict.PLogOffset = view.Partition, view.PLogOffset
		conflict.Workspace, conflict.WLogOffset = view.Workspace, view.WLogOffset
	}
	return conflict
}
