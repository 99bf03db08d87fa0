package logdb

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// Load reads where the log of a store ends, and what log.wal has behind the end of log.db. It makes sure that nothing
// was lost there, and changes nothing.
func (l *Log) Load(store format.StoreID) (messages.LSN, error) {
	end, err := l.endOfDB()
	if err != nil {
		return 0, err
	}
	if err := l.loadWAL(store, end); err != nil {
		return 0, err
	}
	l.end = end + messages.LSN(len(l.pending.values))
	return l.end, nil
}

// endOfDB returns the last LSN of log.db.
func (l *Log) endOfDB() (end messages.LSN, err error) {
	err = l.File.View(func(tx *bbolt.Tx) error {
		l.commit = uint64(tx.ID())
		if err := errors.Join(l.loadPosition(tx), l.loadIDs(tx)); err != nil {
			return err
		}
		b := tx.Bucket(format.BucketLog)
		if k, _ := b.Cursor().Last(); k != nil {
			lsn, ok := format.ParseLSN(k)
			if !ok || lsn == 0 || lsn == math.MaxUint64 { // nothing can follow that one
				return &storage.DamagedError{Where: l.File.PlaceOf(format.BucketLog, "key %x", k), Cause: format.ErrLayout}
			}
			end = lsn
		}
		// It is 0 if nothing was appended since the file was made. What lies behind it is
		// foreign, and is found when it is read.
		if want := messages.LSN(b.Sequence()); end < want {
			return &storage.DamagedError{
				Where: "file " + l.File.Name,
				Cause: fmt.Errorf("the log ends at LSN %d, its sequence says %d", end, want),
			}
		}
		return nil
	})
	return end, err
}

// loadWAL reads what log.wal has. end is the last LSN of log.db.
//
// If log.db says that there is a log.wal, it must be there. If it does not, log.db has had
// everything when it was closed; a log.wal that has more is from after that, and log.db is
// as it was before: a page of it was exchanged, or the file.
func (l *Log) loadWAL(store format.StoreID, end messages.LSN) error {
	l.WAL.Store = store
	l.pending.restart(end + 1)
	noted, err := l.notedWAL()
	if err != nil {
		return err
	}
	r, err := l.WAL.Read()
	if errors.Is(err, wal.ErrNone) && noted == nil {
		return nil
	}
	if err := l.wrongWAL(r, err, noted, end); err != nil {
		return err
	}
	if !l.File.DB.IsReadOnly() {
		l.left, l.content = true, r.B
	}
	if noted == nil && r.Reached <= end {
		return nil // log.db was closed with them
	}
	if err := r.Check(end + 1); err != nil {
		return err
	}
	if err := l.compareWAL(r, end); err != nil {
		return err
	}
	for i := range r.Commits {
		if c := &r.Commits[i]; c.End() > end+1 {
			values, _ := r.Values(c, nil, nil)
			l.pending.push(values[end+1-c.First:])
			end = c.End() - 1
		}
	}
	return nil
}

// wrongWAL says what is wrong with what was read, or could not be, nil if nothing is.
func (l *Log) wrongWAL(r *wal.Reader, err error, noted *wal.ID, end messages.LSN) error {
	switch {
	case noted != nil && errors.Is(err, wal.ErrNone):
		return &storage.DamagedError{Where: "file " + l.WAL.Path(), Cause: fmt.Errorf("%w: %s", err, l.lackOf(*noted, end))}
	case noted != nil && errors.Is(err, storage.ErrForeign):
		return fmt.Errorf("%w: %s", err, l.lackOf(*noted, end))
	case err != nil:
		return err
	case noted != nil && *noted != r.ID:
		return fmt.Errorf("%w: %s has id %v: %s", storage.ErrForeign, l.WAL.Path(), r.ID, l.lackOf(*noted, end))
	}
	return nil
}

// lackOf says what there is to know of a log.wal that is not there: whose it is, what it alone has, and what to do.
func (l *Log) lackOf(id wal.ID, end messages.LSN) string {
	last := "has no event"
	var v format.EventView
	// What is damaged is told by whoever needs it.
	_ = l.Read(func(r *Reader) error {
		if end > 0 {
			last = fmt.Sprintf("ends at LSN %d", end)
		}
		if v.Decode(end, r.Value(end)) == nil {
			last += fmt.Sprintf(" (partition %d, offset %d)", v.Partition, v.PLogOffset)
		}
		return nil
	})
	return fmt.Sprintf("%s names the %s with id %v, and %s: what was acknowledged from LSN %d on, if anything was, is in that file alone; "+
		"put it back beside %s, or restore from a backup", format.LogFileName, format.WALFileName, id, last, end+1, format.LogFileName)
}

// errOtherEvent says that two files have different events in one place.
var errOtherEvent = errors.New("the write-ahead log has another event there")

// compareWAL makes sure that log.db has, up to its end, the events that log.wal has: those
// were acknowledged, and log.wal may be the only one that still has them.
func (l *Log) compareWAL(left *wal.Reader, end messages.LSN) error {
	return l.Read(func(r *Reader) error {
		var values [][]byte
		var data []byte
		for i := range left.Commits {
			c := &left.Commits[i]
			if c.First > end {
				return nil
			}
			values, data = left.Values(c, values[:0], data[:0])
			for j, v := range values {
				lsn := c.First + messages.LSN(j)
				if lsn <= end && !bytes.Equal(r.Value(lsn), v) {
					return &storage.DamagedError{Where: l.File.PlaceOf(format.BucketLog, "LSN %d", lsn), Cause: errOtherEvent}
				}
			}
		}
		return nil
	})
}

// notedWAL returns the id of the log.wal that log.db says there is, nil if there is none.
func (l *Log) notedWAL() (id *wal.ID, err error) {
	err = l.File.View(func(tx *bbolt.Tx) error {
		v := tx.Bucket(format.BucketHeader).Get(format.KeyWAL)
		if v == nil {
			return nil
		}
		data, err := format.Unseal(format.BucketHeader, format.KeyWAL, v, wal.IDLen)
		if err != nil {
			return &storage.DamagedError{Where: l.File.PlaceOf(format.BucketHeader, "%s", format.KeyWAL), Cause: err}
		}
		noted := wal.ID(data)
		id = &noted
		return nil
	})
	return id, err
}
