package files

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
)

// ErrOtherLog says what is wrong with a state.db, and what to do about it.
var ErrOtherLog = errors.New("it was made from another log, perhaps of a copy of the store that has gone on by itself; " +
	"without the file the next open rebuilds it")

// ErrLostEnd says what is wrong with a log that is too short. What there is to do about it depends on
// which of the two it is.
var ErrLostEnd = errors.New("it has lost its end, or " + format.StateFileName + " is of a longer copy of the store")

// CheckOrigin makes sure that the projections are of this log: by the witness and, since programs that wrote none may
// have flushed behind it, by what each checkpoint says of its last event. What of the log cannot be read is told by
// whoever needs it.
func (s *Set) CheckOrigin(st *Stand) error {
	err := s.Log.Read(func(log *logdb.Reader) error {
		var v format.EventView
		if v.Decode(st.Witness.LSN, log.Value(st.Witness.LSN)) == nil && v.CRC != st.Witness.CRC {
			return s.otherLog(format.BucketHeader, string(format.KeyWitness),
				"LSN %d: got CRC %08x, the log has %08x", st.Witness.LSN, st.Witness.CRC, v.CRC)
		}
		for i := range st.Checkpoints {
			if c := &st.Checkpoints[i]; c.LSN > 0 && v.Decode(c.LSN, log.Value(c.LSN)) == nil {
				if err := s.compareCheckpoint(messages.PartitionID(i), c, &v); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.checkProjected(st)
}

func (s *Set) otherLog(bucket []byte, place, format string, args ...any) *storage.DamagedError {
	return &storage.DamagedError{
		Where: s.State.PlaceOf(bucket, "%s", place),
		Cause: fmt.Errorf("%w: %s", ErrOtherLog, fmt.Sprintf(format, args...)),
	}
}

func (s *Set) compareCheckpoint(p messages.PartitionID, c *format.Checkpoint, v *format.EventView) error {
	last := c.Next - 1
	if v.Partition == p && v.PLogOffset == last && v.RegisteredAt == c.RegisteredAt && v.Epoch == c.Epoch {
		return nil
	}
	return s.otherLog(format.BucketCheckpoints, fmt.Sprintf("partition %d", p),
		"LSN %d: got partition %d, offset %d, at %d us, epoch %d, the log has partition %d, offset %d, at %d us, epoch %d",
		c.LSN, p, last, c.RegisteredAt, c.Epoch, v.Partition, v.PLogOffset, v.RegisteredAt, v.Epoch)
}

// checkProjected makes sure that the log has what the projections say that it had. If it
// has less, either it has lost its end or they are of a longer log: it is for the operator to say.
func (s *Set) checkProjected(st *Stand) error {
	want := max(st.Projected-1, st.Witness.LSN)
	for i := range st.Checkpoints {
		want = max(want, st.Checkpoints[i].LSN)
	}
	return s.endsBehind(want)
}

// endsBehind makes sure that the log has all up to the one that state.db states.
func (s *Set) endsBehind(stated messages.LSN) error {
	if s.End >= stated {
		return nil
	}
	return &storage.DamagedError{
		Where: "file " + s.Log.File.Name,
		Cause: fmt.Errorf("the log ends at LSN %d, %s has projections up to %d: %w",
			s.End, format.StateFileName, stated, ErrLostEnd),
	}
}

// stated returns the last LSN that state.db says that the log had, by all of what says so that can be
// read.
func (s *Set) stated() (last messages.LSN) {
	// An error is told by whoever needs what cannot be read.
	_ = s.State.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(format.BucketHeader)
		next, err := format.UnsealUint(format.BucketHeader, format.KeyProjected, b.Get(format.KeyProjected))
		if err == nil && next > 0 {
			last = messages.LSN(next) - 1
		}
		if w, err := format.DecodeWitness(b.Get(format.KeyWitness)); err == nil {
			last = max(last, w.LSN)
		}
		return tx.Bucket(format.BucketCheckpoints).ForEach(func(k, v []byte) error {
			if c, err := format.DecodeCheckpoint(k, v); err == nil {
				last = max(last, c.LSN)
			}
			return nil
		})
	})
	return last
}
