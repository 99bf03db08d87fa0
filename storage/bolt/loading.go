package bolt

import (
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// loadState reads the checkpoints, the lasting conflicts, how far the log is projected,
// and the witness.
func (op *opening) loadState() error {
	for i := range op.partitions {
		op.partitions[i].checkpoint = 1
		op.partitions[i].tail.restart(1)
	}
	return op.state.View(func(tx *bbolt.Tx) error {
		op.projected = 1
		if v := tx.Bucket(format.BucketHeader).Get(format.KeyProjected); v != nil {
			n, err := format.UnsealUint(format.BucketHeader, format.KeyProjected, v)
			if err != nil || n == 0 {
				return &storage.DamagedError{Where: op.state.PlaceOf(format.BucketHeader, "%s", format.KeyProjected), Cause: format.ErrChecksum}
			}
			op.projected = messages.LSN(n)
		}
		if err := op.loadWitness(tx); err != nil {
			return err
		}
		if err := tx.Bucket(format.BucketCheckpoints).ForEach(op.loadCheckpoint); err != nil {
			return err
		}
		return tx.Bucket(format.BucketConflicts).ForEach(op.loadConflict)
	})
}

func (op *opening) loadCheckpoint(k, v []byte) error {
	p, err := op.partitionKey(op.state, format.BucketCheckpoints, k)
	if err != nil {
		return err
	}
	c, err := format.DecodeCheckpoint(k, v)
	if err != nil {
		return &storage.DamagedError{Where: op.state.PlaceOf(format.BucketCheckpoints, "partition %d", p.id), Partition: p.id, Cause: err}
	}
	p.checkpoint, p.last, p.lastAt, p.lastLSN = c.Next, c.Next-1, c.RegisteredAt, c.LSN
	op.logEpochs[p.id] = c.Epoch
	p.tail.restart(c.Next)
	return nil
}

func (op *opening) partitionKey(f *boltfile.File, bucket, k []byte) (*partition, error) {
	if len(k) == format.PartitionKeyLen {
		if id := messages.PartitionID(format.Uint32(k)); uint64(id) < uint64(len(op.partitions)) {
			return &op.partitions[id], nil
		}
	}
	return nil, &storage.DamagedError{Where: f.PlaceOf(bucket, "key %x", k), Cause: format.ErrLayout}
}

func (op *opening) loadConflict(k, v []byte) error {
	e, err := format.DecodeConflict(k, v)
	if err != nil {
		return &storage.DamagedError{Where: op.state.PlaceOf(format.BucketConflicts, "key %x", k), Cause: err}
	}
	if uint64(e.Partition) >= uint64(len(op.partitions)) {
		return &storage.DamagedError{Where: op.state.PlaceOf(format.BucketConflicts, "key %x", k), Cause: format.ErrLayout}
	}
	op.partitions[e.Partition].addConflict(e)
	return nil
}

// loadEpochs reads the current epochs. A partition whose epoch is damaged, or older
// than the log's, has failed: it could be fenced in vain.
func (op *opening) loadEpochs() error {
	err := op.log.File.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketEpochs).ForEach(func(k, v []byte) error {
			p, err := op.partitionKey(op.log.File, format.BucketEpochs, k)
			if err != nil {
				return err
			}
			n, damage := format.UnsealUint(format.BucketEpochs, k, v)
			if damage != nil {
				p.fail(&storage.DamagedError{Where: op.log.File.PlaceOf(format.BucketEpochs, "partition %d", p.id), Partition: p.id, Cause: damage})
			}
			p.epoch = messages.Epoch(n)
			return nil
		})
	})
	if err != nil {
		return err
	}
	for i := range op.partitions {
		p := &op.partitions[i]
		if p.failed == nil && p.epoch < op.logEpochs[i] {
			p.fail(&storage.DamagedError{
				Where: op.log.File.PlaceOf(format.BucketEpochs, "partition %d", p.id), Partition: p.id,
				Cause: fmt.Errorf("got epoch %d, the log has %d", p.epoch, op.logEpochs[i]),
			})
		}
	}
	return nil
}

// checkForeign fails each partition of whose recovered events one has a place in
// the partition's log that is taken: nothing but a projection puts entries there,
// and a projection moves the checkpoint with them.
func (op *opening) checkForeign() error {
	return op.state.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(format.BucketPLog).Cursor()
		for i := range op.partitions {
			p := &op.partitions[i]
			if p.tail.len() == 0 || p.failed != nil {
				continue
			}
			if taken, ok := firstPLogKey(c, p.id, p.checkpoint); ok && taken < p.tail.end() {
				e := p.tail.at(taken)
				p.fail(&storage.ConflictError{
					Place: storage.PlacePLog, Partition: p.id, PLogOffset: taken, LSN: e.lsn,
					Workspace: e.ws, WLogOffset: e.wlog,
				})
			}
		}
		return nil
	})
}
