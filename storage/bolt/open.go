package bolt

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/schema"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
)

// Open opens the store of an application in a directory; with Options.Create it makes
// one if there is none. The descriptor must extend the one that the store was made with;
// what it adds is written to the store.
//
// What the projections lack is read from the log into memory. If state.db is not
// there, is of an older format, or lags further behind than the options allow, it is
// rebuilt first, which may take a while: see Options.Progress. A damaged event does not keep the store
// from opening: the partitions that it can belong to have failed, the others work.
//
// Errors: ErrNotFound; ErrDescriptor; ErrLocked; ErrForeign, ErrFormat and [*storage.DamagedError], which
// leave all files as they were; ErrSettings; those of the file system.
func Open(ctx context.Context, dir string, d messages.Descriptor, o Options) (*Store, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	d = d.Normalized()
	return openStore(ctx, dir, &d, o)
}

// OpenExisting opens a store under the descriptor that it was made with. It
// returns ErrNotFound if there is none, and creates nothing.
func OpenExisting(ctx context.Context, dir string, o Options) (*Store, error) {
	return openStore(ctx, dir, nil, o)
}

// opening is a store that is being opened.
type opening struct {
	*Store
	// stand is how far state.db is.
	stand *files.Stand
	// logEpochs are the epochs of the partitions' last events.
	logEpochs []messages.Epoch
}

func openStore(ctx context.Context, dir string, d *messages.Descriptor, o Options) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	f, err := files.Open(ctx, dir, d, o.ofFiles())
	if err != nil {
		return nil, err
	}
	op := newOpening(f, o)
	if err := op.recover(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	op.start()
	if err := op.replica.start(); err != nil {
		return nil, errors.Join(err, op.Close(context.WithoutCancel(ctx)))
	}
	return op.Store, nil
}

func newOpening(f *files.Set, o Options) *opening {
	s := &Store{files: f, log: f.Log, state: f.State, options: o, shares: o.shares(), schema: schema.New(&f.Descriptor)}
	s.shares.periodBytes = statedb.PeriodBytes(&f.Descriptor)
	if !o.ReadOnly {
		s.known = dedup.NewFilter(s.state, s.shares.known)
	}
	s.partitions = make([]partition, f.Descriptor.Partitions)
	for i := range s.partitions {
		s.partitions[i].id = messages.PartitionID(i)
	}
	return &opening{Store: s, logEpochs: make([]messages.Epoch, f.Descriptor.Partitions)}
}

// recover brings the store to where it stood when it was closed, or killed. No file that was there is written before it
// is known that all belong together, and that the log has lost nothing that the projections have.
func (op *opening) recover(ctx context.Context) error {
	for _, step := range []func() error{
		op.loadState,     // how far the projections are
		op.loadEpochs,    // who may write
		op.files.ReadEnd, // where log.db ends, and what log.wal has behind that
		op.checkReplica,  // its log may go on here
		op.checkOrigin,   // the projections are of this log, and it is not shorter than they say
		op.log.Vouch,     // what was read of log.db is on the disk
		op.log.Settle,    // log.db gets what log.wal has
		// What the projections lack goes into the tails, or into state.db if that is new or lags too far behind.
		func() error { return op.fillTails(ctx) },
		op.finishUnfinished,   // a flush that a crash cut off
		op.checkForeign,       // no place that the tails need in state.db is taken
		op.files.WriteHeaders, // what the descriptor adds
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

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
		p.tail.Restart(c.Next)
		p.stored = format.Checkpoint{Next: c.Next, LSN: c.LSN, RegisteredAt: c.RegisteredAt, Epoch: c.Epoch}
		if c.Target != 0 {
			p.unfinished, op.unfinished = &unfinished{to: c.Target, through: c.Through, cause: errCutOff}, true
		}
	}
	for _, e := range op.stand.Conflicts {
		op.partitions[e.Partition].addConflict(e)
	}
	return nil
}

func (op *opening) finishUnfinished() error {
	if op.options.ReadOnly {
		return nil
	}
	return op.finishFlushes()
}

// checkReplica refuses to write a log that others have, too, without them.
func (op *opening) checkReplica() error {
	if at := op.log.Position; at.Head > 0 && op.options.Log == nil && !op.options.ReadOnly {
		return fmt.Errorf("%w: it has %d entries of a replicated log", ErrReplica, at.Head)
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
		for i := range op.partitions {
			p := &op.partitions[i]
			if p.tail.Len() == 0 || p.failed != nil {
				continue
			}
			if taken, ok := statedb.TakenPLog(tx, p.id, p.checkpoint); ok && taken < p.tail.End() {
				e := p.tail.At(taken)
				p.fail(&storage.ConflictError{
					Place: storage.PlacePLog, Partition: p.id, PLogOffset: taken, LSN: e.LSN,
					Workspace: e.Workspace, WLogOffset: e.WLog,
				})
			}
		}
		return nil
	})
}
