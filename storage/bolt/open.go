package bolt

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
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
	// wanted is the caller's descriptor, nil if the store's own is wanted.
	wanted *messages.Descriptor
	// stored is the descriptor in log.db.
	stored messages.Descriptor
	// staleLog and staleState say that a file's header has an older descriptor.
	staleLog, staleState bool
	// logEpochs are the epochs of the partitions' last events.
	logEpochs []messages.Epoch
	// end is the last LSN of the log.
	end messages.LSN
	// rebuild says that state.db is new and the log is not.
	rebuild bool
}

func openStore(ctx context.Context, dir string, d *messages.Descriptor, o Options) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	op := &opening{Store: &Store{options: o}, wanted: d}
	if err := op.holdDirectory(dir); err != nil {
		return nil, err
	}
	if err := op.run(ctx); err != nil {
		return nil, errors.Join(err, op.abandon())
	}
	op.start()
	return op.Store, nil
}

// holdDirectory opens the directory, and makes it if a store is to be made.
func (op *opening) holdDirectory(dir string) (err error) {
	op.directory, err = boltfile.OpenDirectory(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if op.wanted == nil || op.options.ReadOnly {
		return fmt.Errorf("%w: %w", storage.ErrNotFound, err)
	}
	if err := boltfile.MakeDirs(dir, boltfile.SyncAbove); err != nil {
		return err
	}
	op.directory, err = boltfile.OpenDirectory(dir)
	return err
}

// abandon closes what was opened.
func (op *opening) abandon() error {
	errs := []error{op.log.Close()}
	for _, f := range []*boltfile.File{op.state, op.subscriptions.file.Load()} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(append(errs, op.directory.Close())...)
}

func (op *opening) run(ctx context.Context) error {
	if err := op.openFiles(); err != nil {
		return err
	}
	if err := op.checkSubscriptions(ctx); err != nil {
		return err
	}
	op.makePartitions()
	if err := op.recover(ctx); err != nil {
		return err
	}
	return op.writeHeaders()
}

// recover brings the store to where it stood when it was closed, or killed. Nothing is written before it is known that
// the files belong together and have lost nothing.
func (op *opening) recover(ctx context.Context) error {
	for _, step := range []func() error{
		op.loadState,   // how far the projections are
		op.loadEpochs,  // who may write
		op.loadEnd,     // where log.db ends, and what log.wal has behind that
		op.checkOrigin, // the projections are of this log, and it is not shorter than they say
		op.log.Vouch,   // what was read of log.db is on the disk
		op.log.Settle,  // log.db gets what log.wal has, and log.wal is removed
		// What the projections lack goes into the tails, or into state.db if that is new or lags too far behind.
		func() error { return op.fillTails(ctx) },
		op.checkForeign, // no place that the tails need in state.db is taken
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// openLog opens log.db.
func (op *opening) openLog() error {
	f, err := op.openAgain(format.RoleLog)
	if err == nil {
		op.log = logdb.New(f, op.directory)
	}
	return err
}

// loadEnd reads where the log ends.
func (op *opening) loadEnd() (err error) {
	op.end, err = op.log.Load(op.id)
	return err
}

func (op *opening) makePartitions() {
	op.schema = schema.New(&op.descriptor)
	op.partitions = make([]partition, op.descriptor.Partitions)
	op.logEpochs = make([]messages.Epoch, op.descriptor.Partitions)
	for i := range op.partitions {
		op.partitions[i].id = messages.PartitionID(i)
	}
}

// openFiles finds out what is there, without changing anything, and opens or
// creates both files.
func (op *opening) openFiles() error {
	logThere, err := op.directory.Present(format.LogFileName)
	if err != nil {
		return err
	}
	stateThere, err := op.directory.Present(format.StateFileName)
	if err != nil {
		return err
	}
	if !logThere {
		if err := op.nothingElse(); err != nil {
			return err
		}
	}
	switch {
	case !logThere && (op.wanted == nil || op.options.ReadOnly):
		return fmt.Errorf("%w: %s", storage.ErrNotFound, op.directory.Path)
	case !logThere:
		return op.createStore()
	}
	return op.openExisting(stateThere)
}

func (op *opening) path(name string) string { return op.directory.Join(name) }

func (op *opening) createStore() error {
	// Whoever made the directory may have been killed before this.
	if err := boltfile.SyncAbove(filepath.Dir(op.directory.Path)); err != nil {
		return err
	}
	op.descriptor, op.stored = *op.wanted, *op.wanted
	if _, err := rand.Read(op.id[:]); err != nil {
		return err
	}
	log, err := op.create(format.RoleLog)
	if err != nil {
		return err
	}
	op.log = logdb.New(log, op.directory)
	op.state, err = op.create(format.RoleState)
	return err
}

// openExisting opens the files of a store. Both headers are read before either
// file is opened for writing.
func (op *opening) openExisting(stateThere bool) error {
	logHeader, err := op.inspect(format.RoleLog)
	if err != nil {
		return err
	}
	op.id, op.stored, op.descriptor = logHeader.ID, logHeader.Descriptor, logHeader.Descriptor
	if op.wanted != nil {
		if err := op.wanted.Extends(&op.stored); err != nil {
			return err
		}
		op.descriptor = *op.wanted
	}
	op.staleLog = !sameDescriptor(&op.descriptor, &op.stored)
	switch {
	case stateThere:
		if err := op.inspectState(); err != nil {
			return err
		}
	case op.options.ReadOnly:
		return fmt.Errorf("%w: %w: %s: the projections can only be rebuilt by a store that may write", storage.ErrNotFound, ErrNoState, op.path(format.StateFileName))
	}
	subscriptionsThere, err := op.inspectSubscriptions()
	if err != nil {
		return err
	}
	if err := op.openLog(); err != nil {
		return err
	}
	if subscriptionsThere {
		if err := op.openSubscriptions(); err != nil {
			return err
		}
	}
	if stateThere {
		op.state, err = op.openAgain(format.RoleState)
		return err
	}
	op.rebuild = true
	op.state, err = op.create(format.RoleState)
	return err
}

func (op *opening) inspectState() error {
	h, err := op.inspect(format.RoleState)
	if err != nil {
		return err
	}
	if err := op.sameStore(&h); err != nil {
		return err
	}
	if err := op.knowsAll(&h); err != nil {
		return err
	}
	op.staleState = !sameDescriptor(&op.descriptor, &h.Descriptor)
	return nil
}

// sameStore makes sure that state.db is of the store that the log is of.
func (op *opening) sameStore(state *format.Header) error {
	if state.ID == op.id {
		return nil
	}
	return fmt.Errorf("%w: %s is of store %v, %s of store %v", storage.ErrForeign, op.path(format.StateFileName), state.ID, format.LogFileName, op.id)
}

// knowsAll makes sure that state.db has no kind or sequence that is not known.
func (op *opening) knowsAll(state *format.Header) error {
	if err := op.descriptor.Extends(&state.Descriptor); err != nil {
		return fmt.Errorf("%w: %s: %w", storage.ErrForeign, op.path(format.StateFileName), err)
	}
	return nil
}

func sameDescriptor(a, b *messages.Descriptor) bool {
	return bytes.Equal(format.AppendDescriptor(nil, a), format.AppendDescriptor(nil, b))
}

// inspect reads a file's header through a read-only handle, and makes sure that what is
// behind it can be read, and written.
func (op *opening) inspect(r format.Role) (format.Header, error) {
	f, err := op.openFile(r, true)
	if err != nil {
		return format.Header{}, err
	}
	h, err := f.ReadHeader(r)
	if err == nil && !op.options.ReadOnly {
		err = f.CheckFreelist()
	}
	return h, errors.Join(err, f.Close())
}

// openAgain opens a file whose header was found right, and makes sure that it is
// still the same.
func (op *opening) openAgain(r format.Role) (*boltfile.File, error) {
	f, err := op.openFile(r, op.options.ReadOnly)
	if err != nil {
		return nil, err
	}
	h, err := f.ReadHeader(r)
	if err == nil && h.ID != op.id {
		err = fmt.Errorf("%w: %s was exchanged while it was opened", storage.ErrForeign, f.Name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (op *opening) openFile(r format.Role, readOnly bool) (*boltfile.File, error) {
	return boltfile.OpenFile(op.directory, r.FileName(), op.path(r.FileName()), op.bboltOptions(r, readOnly))
}

// subscriptionsMmapSize is how much of subscriptions.db is mapped first, which makes it as
// large. Whoever reads it is done at once.
const subscriptionsMmapSize = 1 << 20

// bboltOptions are the same for every open but for the limits of size. The
// freelist is written with every commit: log.db has hardly any free page, and
// state.db is written rarely and in big pieces, so that costs little, while a
// freelist that must be found out by reading the file makes opening slow.
func (op *opening) bboltOptions(r format.Role, readOnly bool) *bbolt.Options {
	o := &bbolt.Options{
		Timeout:         op.options.LockTimeout,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: int(op.options.MmapSize),
		ReadOnly:        readOnly,
		NoStatistics:    true,
		MaxSize:         int(op.options.MaxSize),
	}
	switch r {
	case format.RoleLog:
	case format.RoleState:
		o.MaxSize = int(op.options.StateMaxSize)
	case format.RoleSubscriptions:
		o.MaxSize = int(op.options.SubscriptionsMaxSize)
		o.InitialMmapSize = min(o.InitialMmapSize, subscriptionsMmapSize)
	}
	return o
}

// writeHeaders writes the descriptor to the headers that have an older one.
func (op *opening) writeHeaders() error {
	if op.options.ReadOnly {
		return nil
	}
	if op.staleLog {
		if err := op.writeHeader(op.log.File, format.RoleLog); err != nil {
			return err
		}
	}
	if op.staleState {
		return op.writeHeader(op.state, format.RoleState)
	}
	return nil
}

func (op *opening) writeHeader(f *boltfile.File, r format.Role) error {
	h := format.Header{Role: r, ID: op.id, Descriptor: op.descriptor}
	return f.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketHeader).Put(format.KeyHeader, h.Encode())
	})
}
