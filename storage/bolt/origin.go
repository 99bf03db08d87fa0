package bolt

import (
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// checkOrigin makes sure that the projections are of this log, which ends at an LSN: by the witness and, since programs that wrote none may have flushed behind it, by what each
// checkpoint says of its last event. What of the log cannot be read is told by who needs it.
func (op *opening) checkOrigin(end messages.LSN) error {
	err := op.viewLog(func(log *logReader) error {
		var v format.EventView
		if v.Decode(op.witness.LSN, log.value(op.witness.LSN)) == nil && v.CRC != op.witness.CRC {
			return op.otherLog(format.BucketHeader, string(format.KeyWitness), "LSN %d: got CRC %08x, the log has %08x", op.witness.LSN, op.witness.CRC, v.CRC)
		}
		for i := range op.partitions {
			if p := &op.partitions[i]; p.lastLSN > 0 && v.Decode(p.lastLSN, log.value(p.lastLSN)) == nil {
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
		Where: op.state.PlaceOf(bucket, "%s", place),
		Cause: fmt.Errorf("%w: %s", errOtherLog, fmt.Sprintf(format, args...)),
	}
}

func (op *opening) compareCheckpoint(p *partition, v *format.EventView) error {
	epoch := op.logEpochs[p.id]
	if v.Partition == p.id && v.PLogOffset == p.last && v.RegisteredAt == p.lastAt && v.Epoch == epoch {
		return nil
	}
	return op.otherLog(format.BucketCheckpoints, fmt.Sprintf("partition %d", p.id),
		"LSN %d: got partition %d, offset %d, at %d us, epoch %d, the log has partition %d, offset %d, at %d us, epoch %d",
		p.lastLSN, p.id, p.last, p.lastAt, epoch, v.Partition, v.PLogOffset, v.RegisteredAt, v.Epoch)
}

// checkProjected makes sure that the log has what the projections say that it had. If it
// has less, either it has lost its end or they are of a longer log: it is for the operator to say.
func (op *opening) checkProjected(end messages.LSN) error {
	want := max(op.projected-1, op.witness.LSN)
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
		Where: "file " + op.log.Name,
		Cause: fmt.Errorf("the log ends at LSN %d, %s has projections up to %d: %w", end, format.StateFileName, stated, errLostEnd),
	}
}

// stated returns the last LSN that state.db says that the log had, by all of what says so that can be
// read.
func (op *opening) stated() (last messages.LSN) {
	// An error is told by who needs what cannot be read.
	_ = op.state.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(format.BucketHeader)
		if next, err := format.UnsealUint(format.BucketHeader, format.KeyProjected, b.Get(format.KeyProjected)); err == nil && next > 0 {
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
