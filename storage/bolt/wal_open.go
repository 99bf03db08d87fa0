package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// beginWAL makes log.wal, if there is none yet, and notes in log.db that there is one: it
// says so as long as it may lack something. last is the last LSN that is durable.
func (s *Store) beginWAL(last messages.LSN) error {
	if s.wal.file != nil {
		return nil
	}
	if err := s.settleWAL(func() error { return s.awaitApplied(context.Background(), last) }); err != nil {
		return err
	}
	if err := s.hasLog(); err != nil {
		return err
	}
	if err := s.wal.create(); err != nil {
		if s.wal.file != nil || lacksSpace(err) {
			err = s.wal.failed(err)
		}
		return errors.Join(err, s.wal.remove())
	}
	err := s.log.update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketHeader).Put(keyWAL, sealWALID(s.wal.id))
	})
	if err != nil && !errors.Is(err, messages.ErrOutcomeUnknown) {
		return errors.Join(err, s.wal.remove())
	}
	// If log.db may say that there is one, there must be one.
	return err
}

func sealWALID(id walID) []byte { return seal(id[:], 0, bucketHeader, keyWAL) }

// endWAL brings what is left to log.db, and removes log.wal. If log.db cannot take it, it
// stays for the next open.
func (s *Store) endWAL() error {
	if s.applier == nil {
		return nil
	}
	close(s.applier.stop)
	<-s.applier.ended
	if s.wal.file == nil {
		return nil
	}
	if _, values := s.pending.all(); len(values) > 0 {
		return nil
	}
	if err := s.forgetWAL(); err != nil {
		return nil //nolint:nilerr // it stays for the next open, and nothing is lost
	}
	return s.wal.remove()
}

// forgetWAL notes in log.db that it has everything, in both of its meta pages: it may be
// repaired by either. An error says that log.wal must stay.
func (s *Store) forgetWAL() error {
	for range metaPages {
		err := s.log.update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketHeader).Delete(keyWAL) })
		if err != nil {
			return err
		}
	}
	return nil
}

// loadWAL reads what log.wal has. end is the last LSN of log.db.
//
// If log.db says that there is a log.wal, it must be there. If it does not, log.db has had
// everything when it was closed; a log.wal that has more is from after that, and log.db is
// as it was before: a page of it was exchanged, or the file.
func (op *opening) loadWAL(end messages.LSN) error {
	op.wal = wal{directory: op.directory, store: op.id, half: walHalf}
	op.pending.restart(end + 1)
	noted, err := op.notedWAL()
	if err != nil {
		return err
	}
	r, err := op.wal.read()
	if errors.Is(err, errNoWAL) && noted == nil {
		return nil
	}
	if err := op.wrongWAL(r, err, noted, end); err != nil {
		return err
	}
	op.wal.unsettled = true
	if !op.options.ReadOnly {
		op.leftWAL = r.b
	}
	if noted == nil && r.reached <= end {
		return nil
	}
	if err := r.check(end + 1); err != nil {
		return err
	}
	if err := op.compareWAL(r.commits, end); err != nil {
		return err
	}
	op.wal.left = r.commits
	for i := range r.commits {
		c := &r.commits[i]
		if c.end() > end+1 {
			op.pending.push(c.values[end+1-c.first:])
			end = c.end() - 1
		}
	}
	return nil
}

// wrongWAL says what is wrong with what was read, or could not be, nil if nothing is.
func (op *opening) wrongWAL(r *walReader, err error, noted *walID, end messages.LSN) error {
	switch {
	case noted != nil && errors.Is(err, errNoWAL):
		return &storage.DamagedError{Where: "file " + op.wal.path(), Cause: fmt.Errorf("%w: %s", err, op.lackOf(*noted, end))}
	case noted != nil && errors.Is(err, storage.ErrForeign):
		return fmt.Errorf("%w: %s", err, op.lackOf(*noted, end))
	case err != nil:
		return err
	case noted != nil && *noted != r.id:
		return fmt.Errorf("%w: %s has id %v: %s", storage.ErrForeign, op.wal.path(), r.id, op.lackOf(*noted, end))
	}
	return nil
}

// lackOf says what there is to know of a log.wal that is not there: whose it is, what it alone has, and what to do.
func (op *opening) lackOf(id walID, end messages.LSN) string {
	last := "has no event"
	var v eventView
	// What is damaged is told by who needs it.
	_ = op.viewLog(func(log *logReader) error {
		if end > 0 {
			last = fmt.Sprintf("ends at LSN %d", end)
		}
		if v.decode(end, log.value(end)) == nil {
			last += fmt.Sprintf(" (partition %d, offset %d)", v.partition, v.offset)
		}
		return nil
	})
	return fmt.Sprintf("%s names the %s with id %v, and %s: what was acknowledged from LSN %d on is in that file alone; "+
		"put it back beside %s, or restore from a backup", logFileName, walFileName, id, last, end+1, logFileName)
}

// errOtherEvent says that two files have different events in one place.
var errOtherEvent = errors.New("the write-ahead log has another event there")

// compareWAL makes sure that log.db has, up to its end, the events that log.wal has: those
// were acknowledged, and log.wal may be the only one that still has them.
func (op *opening) compareWAL(commits []walCommit, end messages.LSN) error {
	return op.viewLog(func(log *logReader) error {
		for i := range commits {
			for j, v := range commits[i].values {
				lsn := commits[i].first + messages.LSN(j)
				if lsn <= end && !bytes.Equal(log.value(lsn), v) {
					return &storage.DamagedError{Where: op.log.placeOf(bucketLog, "LSN %d", lsn), Cause: errOtherEvent}
				}
			}
		}
		return nil
	})
}

// notedWAL returns the id of the log.wal that log.db says there is, nil if there is none.
func (op *opening) notedWAL() (id *walID, err error) {
	err = op.log.view(func(tx *bbolt.Tx) error {
		v := tx.Bucket(bucketHeader).Get(keyWAL)
		if v == nil {
			return nil
		}
		data, err := unseal(bucketHeader, keyWAL, v, walIDLen)
		if err != nil {
			return &storage.DamagedError{Where: op.log.placeOf(bucketHeader, "%s", keyWAL), Cause: err}
		}
		noted := walID(data)
		id = &noted
		return nil
	})
	return id, err
}

// applyWAL brings to log.db what a crash has left in log.wal. Without space it stays
// pending where it is.
func (op *opening) applyWAL() error {
	if op.options.ReadOnly {
		return nil
	}
	defer func() { op.leftWAL = nil }() // it is large
	err := op.settleWAL(op.applyAll)
	if errors.Is(err, storage.ErrFull) {
		return op.vouchWAL()
	}
	return err
}

// settleWAL removes the log.wal that a crash has left, as soon as log.db has all that is in
// it; apply brings there what is pending. An error says that it must stay.
func (s *Store) settleWAL(apply func() error) error {
	if !s.wal.unsettled {
		return nil
	}
	for _, step := range []func() error{s.rewriteLog, apply, s.forgetWAL, s.wal.unlink} {
		if err := step(); err != nil {
			return err
		}
	}
	s.wal.unsettled = false
	return nil
}

// rewriteLog writes anew what stands in both files. If the sync of log.db has failed before
// the store was closed, the system may show what the disk has not.
func (s *Store) rewriteLog() error {
	for len(s.wal.left) > 0 {
		n, bytes := 0, int64(0)
		for ; n < len(s.wal.left) && bytes < applyMost; n++ {
			bytes += walSize(s.wal.left[n].values)
		}
		chunk := s.wal.left[:n]
		err := s.log.update(func(tx *bbolt.Tx) error {
			log := tx.Bucket(bucketLog)
			log.FillPercent = logFill
			for i := range chunk {
				if err := rewriteCommit(log, &chunk[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		s.wal.left = s.wal.left[n:]
	}
	s.wal.left = nil
	return nil
}

// rewriteCommit leaves alone what is still pending.
func rewriteCommit(log *bbolt.Bucket, c *walCommit) error {
	var key [lsnKeyLen]byte
	for i, v := range c.values {
		k := appendLSNKey(key[:0], c.first+messages.LSN(i))
		if string(log.Get(k)) != string(v) {
			continue
		}
		if err := log.Put(k, v); err != nil {
			return err
		}
	}
	return nil
}
