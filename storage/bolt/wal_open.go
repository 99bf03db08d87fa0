package bolt

import (
	"bytes"
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

// beginWAL makes log.wal, if there is none yet, and notes in log.db that there is one: it
// says so as long as it may lack something. last is the last LSN that is durable.
func (s *Store) beginWAL(last messages.LSN) error {
	if s.wal.File != nil {
		return nil
	}
	if err := s.settleWAL(func() error { return s.awaitApplied(context.Background(), last) }); err != nil {
		return err
	}
	if err := s.hasLog(); err != nil {
		return err
	}
	if err := s.wal.Create(); err != nil {
		if s.wal.File != nil || boltfile.LacksSpace(err) {
			err = s.wal.Failed(err)
		}
		return errors.Join(err, s.wal.Remove())
	}
	err := s.log.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketHeader).Put(format.KeyWAL, sealWALID(s.wal.ID))
	})
	if err != nil && !errors.Is(err, messages.ErrOutcomeUnknown) {
		return errors.Join(err, s.wal.Remove())
	}
	// If log.db may say that there is one, there must be one.
	return err
}

func sealWALID(id wal.ID) []byte { return format.Seal(id[:], 0, format.BucketHeader, format.KeyWAL) }

// endWAL brings what is left to log.db, and removes log.wal. If log.db cannot take it, it
// stays for the next open.
func (s *Store) endWAL() error {
	if s.applier == nil {
		return nil
	}
	close(s.applier.stop)
	<-s.applier.ended
	if s.wal.File == nil {
		return nil
	}
	if _, values := s.pending.all(); len(values) > 0 {
		return nil
	}
	if err := s.forgetWAL(); err != nil {
		return nil //nolint:nilerr // it stays for the next open, and nothing is lost
	}
	return s.wal.Remove()
}

// forgetWAL notes in log.db that it has everything, in both of its meta pages: it may be
// repaired by either. An error says that log.wal must stay.
func (s *Store) forgetWAL() error {
	for range boltfile.MetaPages {
		err := s.log.Update(func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketHeader).Delete(format.KeyWAL) })
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
	op.wal = wal.Writer{Directory: op.directory, Store: op.id, Half: wal.Half}
	op.pending.restart(end + 1)
	noted, err := op.notedWAL()
	if err != nil {
		return err
	}
	r, err := op.wal.Read()
	if errors.Is(err, wal.ErrNone) && noted == nil {
		return nil
	}
	if err := op.wrongWAL(r, err, noted, end); err != nil {
		return err
	}
	op.wal.Unsettled = true
	if !op.options.ReadOnly {
		op.leftWAL = r.B
	}
	if noted == nil && r.Reached <= end {
		return nil
	}
	if err := r.Check(end + 1); err != nil {
		return err
	}
	if err := op.compareWAL(r.Commits, end); err != nil {
		return err
	}
	op.wal.Left = r.Commits
	for i := range r.Commits {
		c := &r.Commits[i]
		if c.End() > end+1 {
			op.pending.push(c.Values[end+1-c.First:])
			end = c.End() - 1
		}
	}
	return nil
}

// wrongWAL says what is wrong with what was read, or could not be, nil if nothing is.
func (op *opening) wrongWAL(r *wal.Reader, err error, noted *wal.ID, end messages.LSN) error {
	switch {
	case noted != nil && errors.Is(err, wal.ErrNone):
		return &storage.DamagedError{Where: "file " + op.wal.Path(), Cause: fmt.Errorf("%w: %s", err, op.lackOf(*noted, end))}
	case noted != nil && errors.Is(err, storage.ErrForeign):
		return fmt.Errorf("%w: %s", err, op.lackOf(*noted, end))
	case err != nil:
		return err
	case noted != nil && *noted != r.ID:
		return fmt.Errorf("%w: %s has id %v: %s", storage.ErrForeign, op.wal.Path(), r.ID, op.lackOf(*noted, end))
	}
	return nil
}

// lackOf says what there is to know of a log.wal that is not there: whose it is, what it alone has, and what to do.
func (op *opening) lackOf(id wal.ID, end messages.LSN) string {
	last := "has no event"
	var v format.EventView
	// What is damaged is told by who needs it.
	_ = op.viewLog(func(log *logReader) error {
		if end > 0 {
			last = fmt.Sprintf("ends at LSN %d", end)
		}
		if v.Decode(end, log.value(end)) == nil {
			last += fmt.Sprintf(" (partition %d, offset %d)", v.Partition, v.PLogOffset)
		}
		return nil
	})
	return fmt.Sprintf("%s names the %s with id %v, and %s: what was acknowledged from LSN %d on is in that file alone; "+
		"put it back beside %s, or restore from a backup", format.LogFileName, format.WALFileName, id, last, end+1, format.LogFileName)
}

// compareWAL makes sure that log.db has, up to its end, the events that log.wal has: those
// were acknowledged, and log.wal may be the only one that still has them.
func (op *opening) compareWAL(commits []wal.Commit, end messages.LSN) error {
	return op.viewLog(func(log *logReader) error {
		for i := range commits {
			for j, v := range commits[i].Values {
				lsn := commits[i].First + messages.LSN(j)
				if lsn <= end && !bytes.Equal(log.value(lsn), v) {
					return &storage.DamagedError{Where: op.log.PlaceOf(format.BucketLog, "LSN %d", lsn), Cause: errOtherEvent}
				}
			}
		}
		return nil
	})
}

// notedWAL returns the id of the log.wal that log.db says there is, nil if there is none.
func (op *opening) notedWAL() (id *wal.ID, err error) {
	err = op.log.View(func(tx *bbolt.Tx) error {
		v := tx.Bucket(format.BucketHeader).Get(format.KeyWAL)
		if v == nil {
			return nil
		}
		data, err := format.Unseal(format.BucketHeader, format.KeyWAL, v, wal.IDLen)
		if err != nil {
			return &storage.DamagedError{Where: op.log.PlaceOf(format.BucketHeader, "%s", format.KeyWAL), Cause: err}
		}
		noted := wal.ID(data)
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
	if !s.wal.Unsettled {
		return nil
	}
	for _, step := range []func() error{s.rewriteLog, apply, s.forgetWAL, s.wal.Unlink} {
		if err := step(); err != nil {
			return err
		}
	}
	s.wal.Unsettled = false
	return nil
}

// rewriteLog writes anew what stands in both files. If the sync of log.db has failed before
// the store was closed, the system may show what the disk has not.
func (s *Store) rewriteLog() error {
	for len(s.wal.Left) > 0 {
		n, bytes := 0, int64(0)
		for ; n < len(s.wal.Left) && bytes < applyMost; n++ {
			bytes += wal.Size(s.wal.Left[n].Values)
		}
		chunk := s.wal.Left[:n]
		err := s.log.Update(func(tx *bbolt.Tx) error {
			log := tx.Bucket(format.BucketLog)
			log.FillPercent = boltfile.LogFill
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
		s.wal.Left = s.wal.Left[n:]
	}
	s.wal.Left = nil
	return nil
}

// rewriteCommit leaves alone what is still pending.
func rewriteCommit(log *bbolt.Bucket, c *wal.Commit) error {
	var key [format.LSNKeyLen]byte
	for i, v := range c.Values {
		k := format.AppendLSNKey(key[:0], c.First+messages.LSN(i))
		if string(log.Get(k)) != string(v) {
			continue
		}
		if err := log.Put(k, v); err != nil {
			return err
		}
	}
	return nil
}
