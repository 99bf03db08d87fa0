package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// beginWAL makes log.wal, if there is none yet, and notes in log.db that there is one: it
// says so as long as it may lack something.
func (s *Store) beginWAL() error {
	if s.wal.file != nil {
		return nil
	}
	if err := s.wal.create(); err != nil {
		if lacksSpace(err) {
			err = fmt.Errorf("%w: %w", storage.ErrFull, err)
		}
		return errors.Join(fmt.Errorf("make %s: %w", s.wal.path, err), s.wal.remove())
	}
	err := s.log.update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketHeader).Put(keyWAL, sealWALID(s.wal.id))
	})
	if err != nil {
		return errors.Join(err, s.wal.remove())
	}
	return nil
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
	if _, values := s.pending.take(1); len(values) > 0 {
		return s.wal.file.Close()
	}
	if err := s.forgetWAL(); err != nil {
		return errors.Join(err, s.wal.file.Close())
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
	op.wal = wal{dir: op.dir, path: op.path(walFileName), store: op.id, half: walHalf}
	op.pending.restart(end + 1)
	noted, err := op.notedWAL()
	if err != nil {
		return err
	}
	r, err := readWAL(op.wal.path, op.id, op.wal.half)
	switch {
	case errors.Is(err, errNoWAL) && noted == nil:
		return nil
	case errors.Is(err, errNoWAL):
		return &storage.DamagedError{Where: "file " + op.wal.path, Cause: fmt.Errorf("%w: it has what was appended last", err)}
	case err != nil:
		return err
	case noted != nil && *noted != r.id:
		return fmt.Errorf("%w: %s was exchanged: %s knows another one", storage.ErrForeign, op.wal.path, logFileName)
	}
	if noted == nil && r.reached <= end {
		return nil
	}
	if err := r.check(end + 1); err != nil {
		return err
	}
	op.walCommits = r.commits
	for i := range r.commits {
		c := &r.commits[i]
		if c.end() > end+1 {
			op.pending.push(c.values[end+1-c.first:])
			end = c.end() - 1
		}
	}
	return nil
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
// pending.
func (op *opening) applyWAL() error {
	if op.options.ReadOnly {
		return nil
	}
	err := op.rewriteLog()
	if err == nil {
		op.applyAll()
		_, _, err, _ = op.pending.state()
	}
	op.walCommits = nil
	if err == nil {
		err = op.forgetWAL()
	}
	if errors.Is(err, storage.ErrFull) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Remove(op.wal.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// rewriteLog writes anew what stands in both files. If the sync of log.db has failed before
// the store was closed, the system may show what the disk has not.
func (op *opening) rewriteLog() error {
	for commits := op.walCommits; len(commits) > 0; {
		n, bytes := 0, int64(0)
		for ; n < len(commits) && bytes < applyMost; n++ {
			bytes += walSize(commits[n].values)
		}
		chunk := commits[:n]
		commits = commits[n:]
		err := op.log.update(func(tx *bbolt.Tx) error {
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
	}
	return nil
}

// rewriteCommit leaves alone what is not there, or is something else.
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
