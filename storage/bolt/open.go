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
	// logCommit is the last commit of log.db.
	logCommit uint64
	// leftWAL is what is in the log.wal that a crash has left, nil if there is none.
	leftWAL []byte
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
	op.directory, err = openDirectory(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if op.wanted == nil || op.options.ReadOnly {
		return fmt.Errorf("%w: %w", storage.ErrNotFound, err)
	}
	if err := makeDirs(dir, syncAbove); err != nil {
		return err
	}
	op.directory, err = openDirectory(dir)
	return err
}

// abandon closes what was opened.
func (op *opening) abandon() error {
	var errs []error
	for _, f := range []*file{op.log, op.state, op.subscriptions.file.Load()} {
		if f != nil {
			errs = append(errs, f.close())
		}
	}
	return errors.Join(append(errs, op.wal.close(), op.directory.close())...)
}

func (op *opening) run(ctx context.Context) error {
	if err := op.openFiles(); err != nil {
		return err
	}
	if err := op.checkSubscriptions(ctx); err != nil {
		return err
	}
	op.makePartitions()
	if err := op.loadState(); err != nil {
		return err
	}
	if err := op.loadEpochs(); err != nil {
		return err
	}
	if err := op.fillTails(ctx); err != nil {
		return err
	}
	return op.writeHeaders()
}

func (op *opening) makePartitions() {
	op.schema = newSchema(&op.descriptor)
	op.partitions = make([]partition, op.descriptor.Partitions)
	op.logEpochs = make([]messages.Epoch, op.descriptor.Partitions)
	for i := range op.partitions {
		op.partitions[i].id = messages.PartitionID(i)
	}
}

// openFiles finds out what is there, without changing anything, and opens or
// creates both files.
func (op *opening) openFiles() error {
	logThere, err := op.directory.present(logFileName)
	if err != nil {
		return err
	}
	stateThere, err := op.directory.present(stateFileName)
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
		return fmt.Errorf("%w: %s", storage.ErrNotFound, op.directory.path)
	case !logThere:
		return op.createStore()
	}
	return op.openExisting(stateThere)
}

func (op *opening) path(name string) string { return op.directory.join(name) }

func (op *opening) createStore() error {
	// Whoever made the directory may have been killed before this.
	if err := syncAbove(filepath.Dir(op.directory.path)); err != nil {
		return err
	}
	op.descriptor, op.stored = *op.wanted, *op.wanted
	if _, err := rand.Read(op.id[:]); err != nil {
		return err
	}
	var err error
	if op.log, err = op.create(roleLog); err != nil {
		return err
	}
	op.state, err = op.create(roleState)
	return err
}

// openExisting opens the files of a store. Both headers are read before either
// file is opened for writing.
func (op *opening) openExisting(stateThere bool) error {
	logHeader, err := op.inspect(roleLog)
	if err != nil {
		return err
	}
	op.id, op.stored, op.descriptor = logHeader.id, logHeader.descriptor, logHeader.descriptor
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
		return fmt.Errorf("%w: %w: %s: the projections can only be rebuilt by a store that may write", storage.ErrNotFound, ErrNoState, op.path(stateFileName))
	}
	subscriptionsThere, err := op.inspectSubscriptions()
	if err != nil {
		return err
	}
	if op.log, err = op.openAgain(roleLog); err != nil {
		return err
	}
	if subscriptionsThere {
		if err := op.openSubscriptions(); err != nil {
			return err
		}
	}
	if stateThere {
		op.state, err = op.openAgain(roleState)
		return err
	}
	op.rebuild = true
	op.state, err = op.create(roleState)
	return err
}

func (op *opening) inspectState() error {
	h, err := op.inspect(roleState)
	if err != nil {
		return err
	}
	if err := op.sameStore(&h); err != nil {
		return err
	}
	if err := op.knowsAll(&h); err != nil {
		return err
	}
	op.staleState = !sameDescriptor(&op.descriptor, &h.descriptor)
	return nil
}

// sameStore makes sure that state.db is of the store that the log is of.
func (op *opening) sameStore(state *header) error {
	if state.id == op.id {
		return nil
	}
	return fmt.Errorf("%w: %s is of store %v, %s of store %v", storage.ErrForeign, op.path(stateFileName), state.id, logFileName, op.id)
}

// knowsAll makes sure that state.db has no kind or sequence that is not known.
func (op *opening) knowsAll(state *header) error {
	if err := op.descriptor.Extends(&state.descriptor); err != nil {
		return fmt.Errorf("%w: %s: %w", storage.ErrForeign, op.path(stateFileName), err)
	}
	return nil
}

func sameDescriptor(a, b *messages.Descriptor) bool {
	return bytes.Equal(appendDescriptor(nil, a), appendDescriptor(nil, b))
}

// inspect reads a file's header through a read-only handle, and makes sure that what is
// behind it can be read, and written.
func (op *opening) inspect(r role) (header, error) {
	f, err := op.openFile(r, true)
	if err != nil {
		return header{}, err
	}
	h, err := f.readHeader(r)
	if err == nil && !op.options.ReadOnly {
		err = f.checkFreelist()
	}
	return h, errors.Join(err, f.close())
}

// openAgain opens a file whose header was found right, and makes sure that it is
// still the same.
func (op *opening) openAgain(r role) (*file, error) {
	f, err := op.openFile(r, op.options.ReadOnly)
	if err != nil {
		return nil, err
	}
	h, err := f.readHeader(r)
	if err == nil && h.id != op.id {
		err = fmt.Errorf("%w: %s was exchanged while it was opened", storage.ErrForeign, f.name)
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (op *opening) openFile(r role, readOnly bool) (*file, error) {
	return openFile(op.directory, r.fileName(), op.path(r.fileName()), op.bboltOptions(r, readOnly))
}

func (r role) fileName() string {
	switch r {
	case roleState:
	case roleLog:
		return logFileName
	case roleSubscriptions:
		return subscriptionsFileName
	}
	return stateFileName
}

// subscriptionsMmapSize is how much of subscriptions.db is mapped first, which makes it as
// large. Whoever reads it is done at once.
const subscriptionsMmapSize = 1 << 20

// bboltOptions are the same for every open but for the limits of size. The
// freelist is written with every commit: log.db has hardly any free page, and
// state.db is written rarely and in big pieces, so that costs little, while a
// freelist that must be found out by reading the file makes opening slow.
func (op *opening) bboltOptions(r role, readOnly bool) *bbolt.Options {
	o := &bbolt.Options{
		Timeout:         op.options.LockTimeout,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: int(op.options.MmapSize),
		ReadOnly:        readOnly,
		NoStatistics:    true,
		MaxSize:         int(op.options.MaxSize),
	}
	switch r {
	case roleLog:
	case roleState:
		o.MaxSize = int(op.options.StateMaxSize)
	case roleSubscriptions:
		o.MaxSize = int(op.options.SubscriptionsMaxSize)
		o.InitialMmapSize = min(o.InitialMmapSize, subscriptionsMmapSize)
	}
	return o
}

// readHeader reads and checks a file's header, its meta pages, its buckets and its
// length.
func (f *file) readHeader(r role) (header, error) {
	checkMeta := func() error { return f.checkMeta(r) }
	for _, check := range []func() error{checkMeta, f.truncated, f.checkRoot, f.checkTrees} {
		if err := check(); err != nil {
			return header{}, err
		}
	}
	return f.header(r)
}

// header reads and checks a file's header and looks for its buckets. The file may be in
// use.
func (f *file) header(r role) (h header, err error) {
	err = f.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketHeader)
		if b == nil {
			return f.noHeader(tx, r)
		}
		h, err = decodeHeader(b.Get(keyHeader))
		switch {
		case errors.Is(err, storage.ErrForeign), errors.Is(err, storage.ErrFormat):
			return fmt.Errorf("%s: %w", f.name, err)
		case err != nil:
			return &storage.DamagedError{Where: f.placeOf(bucketHeader, "%s", keyHeader), Cause: err}
		case h.role != r:
			return fmt.Errorf("%w: %s: got a %v file, want a %v file", storage.ErrForeign, f.name, h.role, r)
		}
		for _, name := range r.buckets() {
			if tx.Bucket(name) == nil {
				return &storage.DamagedError{Where: f.placeOf(name, "the bucket"), Cause: errMissing}
			}
		}
		return nil
	})
	return h, err
}

// noHeader says what a file without a header is: damaged, if it has all our other buckets.
func (f *file) noHeader(tx *bbolt.Tx, r role) error {
	for _, name := range r.buckets() {
		if !bytes.Equal(name, bucketHeader) && tx.Bucket(name) == nil {
			return fmt.Errorf("%w: %s: no header", storage.ErrForeign, f.name)
		}
	}
	return &storage.DamagedError{Where: f.placeOf(bucketHeader, "the bucket"), Cause: errMissing}
}

func (r role) buckets() [][]byte {
	switch r {
	case roleState:
	case roleLog:
		return logBuckets
	case roleSubscriptions:
		return subscriptionsBuckets
	}
	return stateBuckets
}

// writeHeaders writes the descriptor to the headers that have an older one.
func (op *opening) writeHeaders() error {
	if op.options.ReadOnly {
		return nil
	}
	if op.staleLog {
		if err := op.writeHeader(op.log, roleLog); err != nil {
			return err
		}
	}
	if op.staleState {
		return op.writeHeader(op.state, roleState)
	}
	return nil
}

func (op *opening) writeHeader(f *file, r role) error {
	h := header{role: r, id: op.id, descriptor: op.descriptor}
	return f.update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketHeader).Put(keyHeader, h.encode())
	})
}
