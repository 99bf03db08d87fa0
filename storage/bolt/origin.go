package bolt

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// errOtherLog says what is wrong with a state.db, and what to do about it.
var errOtherLog = errors.New("it was made from another log, perhaps of a copy of the store that has gone on by itself; without the file the next open rebuilds it")

// errLostEnd says what is wrong with a log that is too short. What there is to do about it depends on
// which of the two it is.
var errLostEnd = errors.New("it has lost its end, or " + stateFileName + " is of a longer copy of the store")

// checkOrigin makes sure that the projections are of this log, which ends at an LSN: by the witness and, since programs that wrote none may have flushed behind it, by what each
// checkpoint says of its last event. What of the log cannot be read is told by who needs it.
func (op *opening) checkOrigin(end messages.LSN) error {
	err := op.viewLog(func(log *logReader) error {
		var v eventView
		if v.decode(op.witness.lsn, log.value(op.witness.lsn)) == nil && v.crc != op.witness.crc {
			return op.otherLog(bucketHeader, string(keyWitness), "LSN %d: got CRC %08x, the log has %08x", op.witness.lsn, op.witness.crc, v.crc)
		}
		for i := range op.partitions {
			if p := &op.partitions[i]; p.lastLSN > 0 && v.decode(p.lastLSN, log.value(p.lastLSN)) == nil {
				if err := op.compareCheckpoint(p, &v); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return op.checkProjected(end)
}

func (op *opening) otherLog(bucket []byte, place, format string, args ...any) *storage.DamagedError {
	return &storage.DamagedError{
		Where: op.state.placeOf(bucket, "%s", place),
		Cause: fmt.Errorf("%w: %s", errOtherLog, fmt.Sprintf(format, args...)),
	}
}

func (op *opening) compareCheckpoint(p *partition, v *eventView) error {
	epoch := op.logEpochs[p.id]
	if v.partition == p.id && v.offset == p.last && v.at == p.lastAt && v.epoch == epoch {
		return nil
	}
	return op.otherLog(bucketCheckpoints, fmt.Sprintf("partition %d", p.id),
		"LSN %d: got partition %d, offset %d, at %d us, epoch %d, the log has partition %d, offset %d, at %d us, epoch %d",
		p.lastLSN, p.id, p.last, p.lastAt, epoch, v.partition, v.offset, v.at, v.epoch)
}

// checkProjected makes sure that the log has what the projections say that it had. If it
// has less, either it has lost its end or they are of a longer log: it is for the operator to say.
func (op *opening) checkProjected(end messages.LSN) error {
	want := max(op.projected-1, op.witness.lsn)
	for i := range op.partitions {
		want = max(want, op.partitions[i].lastLSN)
	}
	return op.endsBehind(end, want)
}

// endsBehind makes sure that the log, which ends at an LSN, has all up to the one that state.db states.
func (op *opening) endsBehind(end, stated messages.LSN) error {
	if end >= stated {
		return nil
	}
	return &storage.DamagedError{
		Where: "file " + op.log.name,
		Cause: fmt.Errorf("the log ends at LSN %d, %s has projections up to %d: %w", end, stateFileName, stated, errLostEnd),
	}
}

// stated returns the last LSN that state.db says that the log had, by all of what says so that can be
// read.
func (op *opening) stated() (last messages.LSN) {
	// An error is told by who needs what cannot be read.
	_ = op.state.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketHeader)
		if next, err := unsealUint(bucketHeader, keyProjected, b.Get(keyProjected)); err == nil && next > 0 {
			last = messages.LSN(next) - 1
		}
		if w, err := decodeWitness(b.Get(keyWitness)); err == nil {
			last = max(last, w.lsn)
		}
		return tx.Bucket(bucketCheckpoints).ForEach(func(k, v []byte) error {
			if c, err := decodeCheckpoint(k, v); err == nil {
				last = max(last, c.lsn)
			}
			return nil
		})
	})
	return last
}
