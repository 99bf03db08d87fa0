package bolt

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// witness names an event of the log that state.db has read: its LSN and the CRC of its
// value. A copy of a store has its id; if both go on, the state.db of one says of the
// other's log what is not so, and numbers would be given twice. The witness tells them
// apart.
//
//	 0     8               12    16
//	+-----+---------------+-----+
//	| LSN | CRC of the    | CRC |
//	|     | event's value |     |
//	+-----+---------------+-----+
type witness struct {
	lsn messages.LSN
	crc uint32
}

func (w witness) encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, witnessLen), uint64(w.lsn))
	return seal(binary.BigEndian.AppendUint32(b, w.crc), 0, bucketHeader, keyWitness)
}

// storedWitness returns state.db's witness, the zero one if it has none: nothing is
// projected, or by a program that wrote none.
func storedWitness(tx *bbolt.Tx) (witness, error) {
	v := tx.Bucket(bucketHeader).Get(keyWitness)
	if v == nil {
		return witness{}, nil
	}
	d, err := unseal(bucketHeader, keyWitness, v, witnessLen-sealedOverhead)
	if err != nil {
		return witness{}, err
	}
	return witness{lsn: messages.LSN(binary.BigEndian.Uint64(d)), crc: binary.BigEndian.Uint32(d[8:])}, nil
}

// putWitness stores the newest event that was read.
func (p *projection) putWitness(tx *bbolt.Tx) error {
	stored, err := storedWitness(tx)
	switch {
	case err != nil:
		return &storage.DamagedError{Where: placeOf(bucketHeader, "%s", keyWitness), Cause: err}
	case stored.lsn >= p.witness.lsn:
		return nil
	}
	return tx.Bucket(bucketHeader).Put(keyWitness, p.witness.encode())
}

// errOtherLog says what is wrong with a state.db, and what to do about it.
var errOtherLog = errors.New("it was made from another log, perhaps of a copy of the store that has gone on by itself; without the file the next open rebuilds it")

// checkOrigin makes sure that the projections are of this log. Where the witness cannot be
// compared, the newest event that a checkpoint names and that can be read stands for it.
func (op *opening) checkOrigin() error {
	var w witness
	err := op.state.view(func(tx *bbolt.Tx) (err error) {
		w, err = storedWitness(tx)
		return err
	})
	if err != nil {
		return &storage.DamagedError{Where: op.state.placeOf(bucketHeader, "%s", keyWitness), Cause: err}
	}
	return op.viewLog(func(log *logReader) error {
		var v eventView
		if v.decode(w.lsn, log.value(w.lsn)) != nil {
			return op.checkNewest(log)
		}
		if v.crc != w.crc {
			return &storage.DamagedError{
				Where: op.state.placeOf(bucketHeader, "%s", keyWitness),
				Cause: fmt.Errorf("%w: LSN %d: got CRC %08x, the log has %08x", errOtherLog, w.lsn, w.crc, v.crc),
			}
		}
		return nil
	})
}

// checkNewest compares the newest event before a checkpoint with what that says of it.
func (op *opening) checkNewest(log *logReader) error {
	var at []*partition
	for i := range op.partitions {
		if p := &op.partitions[i]; p.lastLSN > 0 {
			at = append(at, p)
		}
	}
	slices.SortFunc(at, func(a, b *partition) int { return cmp.Compare(b.lastLSN, a.lastLSN) })
	var v eventView
	for _, p := range at {
		if v.decode(p.lastLSN, log.value(p.lastLSN)) != nil {
			continue // told by who needs it
		}
		epoch := op.logEpochs[p.id]
		if v.partition == p.id && v.offset == p.last && v.at == p.lastAt && v.epoch == epoch {
			return nil
		}
		return &storage.DamagedError{
			Where: op.state.placeOf(bucketCheckpoints, "partition %d", p.id), Partition: p.id,
			Cause: fmt.Errorf("%w: LSN %d: got partition %d, offset %d, at %d us, epoch %d, the log has partition %d, offset %d, at %d us, epoch %d",
				errOtherLog, p.lastLSN, p.id, p.last, p.lastAt, epoch, v.partition, v.offset, v.at, v.epoch),
		}
	}
	return nil
}
