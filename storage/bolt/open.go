package bolt

import (
	"context"
	"errors"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/schema"
)

// Open opens the store of an application in a directory, or creates both. The
// descriptor must extend the one that the store was made with; what it adds is
// written to the store.
//
// What the projections lack is read from the log into memory. If state.db is not
// there, or lags further behind than the options allow, it is rebuilt first, which
// may take a while: see Options.Progress. A damaged event does not keep the store
// from opening: the partitions that it can belong to have failed, the others work.
//
// Errors: ErrDescriptor; ErrLocked; ErrForeign, ErrFormat and [*storage.DamagedError], which
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
	return op.Store, nil
}

func newOpening(f *files.Set, o Options) *opening {
	s := &Store{files: f, log: f.Log, state: f.State, options: o, schema: schema.New(&f.Descriptor)}
	s.partitions = make([]partition, f.Descriptor.Partitions)
	for i := range s.partitions {
		s.partitions[i].id = messages.PartitionID(i)
	}
	return &opening{Store: s, logEpochs: make([]messages.Epoch, f.Descriptor.Partitions)}
}

// recover brings the store to where it stood when it was closed, or killed. Nothing is written before it is known that
// the files belong together and have lost nothing.
func (op *opening) recover(ctx context.Context) error {
	for _, step := range []func() error{
		op.loadState,     // how far the projections are
		op.loadEpochs,    // who may write
		op.files.ReadEnd, // where log.db ends, and what log.wal has behind that
		op.checkOrigin,   // the projections are of this log, and it is not shorter than they say
		op.log.Vouch,     // what was read of log.db is on the disk
		op.log.Settle,    // log.db gets what log.wal has, and log.wal is removed
		// What the projections lack goes into the tails, or into state.db if that is new or lags too far behind.
		func() error { return op.fillTails(ctx) },
		op.checkForeign,       // no place that the tails need in state.db is taken
		op.files.WriteHeaders, // what the descriptor adds
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
