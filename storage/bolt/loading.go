package bolt

import (
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// loadState takes over the checkpoints, the lasting conflicts, how far the log is projected,
// and the witness.
func (op *opening) loadState() (err error) {
	if op.stand, err = op.files.Stand(); err != nil {
		return err
	}
	op.projected, op.witness = op.stand.Projected, op.stand.Witness
	for i := range op.stand.Checkpoints {
		c, p := &op.stand.Checkpoints[i], &op.partitions[i]
		p.checkpoint, p.last, p.lastAt, p.lastLSN = c.Next, c.Next-1, c.RegisteredAt, c.LSN
		op.logEpochs[i] = c.Epoch
		p.tail.restart(c.Next)
	}
	for _, e := range op.stand.Conflicts {
		op.partitions[e.Partition].addConflict(e)
	}
	return nil
}

func (op *opening) checkOrigin() error { return op.files.CheckOrigin(op.stand) }

// loadEpochs takes over the current epochs. A partition whose epoch is damaged, or older
// than the log's, has failed: it could be fenced in vain.
func (op *opening) loadEpochs() error {
	epochs, err := op.files.Epochs()
	if err != nil {
		return err
	}
	for i, e := range epochs {
		p := &op.partitions[i]
		p.epoch = e.Epoch
		switch {
		case e.Damage != nil:
			p.fail(e.Damage)
		case p.epoch < op.logEpochs[i]:
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
