package files

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
)

// Options say how files are opened.
type Options struct {
	// ReadOnly opens them without changing a byte.
	ReadOnly bool
	// Create makes a store where there is none.
	Create bool
	// AcceptNewer lets a descriptor be wanted that lacks what the store has.
	AcceptNewer bool
	// LockTimeout is how long to wait for another process to release a file.
	LockTimeout time.Duration
	// MmapSize is how much address space is reserved for each file, in bytes.
	MmapSize int64
	// These are the largest sizes of the files in bytes, 0 for no limit.
	MaxSize, StateMaxSize, SubscriptionsMaxSize int64
}

// Set is the files of a store. Those that are not open are nil.
type Set struct {
	options   Options
	Directory *boltfile.Directory
	// ID and Descriptor are the store's.
	ID         format.StoreID
	Descriptor messages.Descriptor
	// Found is the descriptor that the store had; nil if there was no store.
	Found *messages.Descriptor
	Log   *logdb.Log
	State *boltfile.File
	// Subscriptions is nil until there is one. The keeper makes it.
	Subscriptions atomic.Pointer[boltfile.File]
	// OldSubscriptions is the header of a subscriptions.db of an older format, which the first commit makes one of this
	// format; nil if it is. The keeper has it.
	OldSubscriptions *format.Header
	// End is the last LSN of the log, as it was read.
	End     messages.LSN
	endRead bool
	// StateIsNew says that there was no state.db, but a log.
	StateIsNew bool
	// staleLog and staleState say that a file's header has an older descriptor.
	staleLog, staleState bool
}

// Hold opens the directory of a store. Close must be called.
func Hold(dir string, o Options) (*Set, error) {
	d, err := boltfile.OpenDirectory(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", storage.ErrNotFound, err)
	}
	if err != nil {
		return nil, err
	}
	return &Set{options: o, Directory: d}, nil
}

// Close releases the files.
func (s *Set) Close() error {
	if s == nil {
		return nil
	}
	errs := []error{s.Log.Close()}
	for _, file := range []*boltfile.File{s.State, s.Subscriptions.Load()} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(append(errs, s.Directory.Close())...)
}

// Path names a file.
func (s *Set) Path(name string) string { return s.Directory.Join(name) }

// OpenFile opens one of the files.
func (s *Set) OpenFile(r format.Role, readOnly bool) (*boltfile.File, error) {
	return s.openAs(r.FileName(), r, readOnly)
}

// openAs opens a file under any name. Errors have its own.
func (s *Set) openAs(name string, r format.Role, readOnly bool) (*boltfile.File, error) {
	return boltfile.OpenFile(s.Directory, name, s.Path(r.FileName()), s.bboltOptions(r, readOnly))
}

// smallMmapSize is how much of subscriptions.db or ids.db is mapped first, which makes it as
// large. Whoever reads it is done at once.
const smallMmapSize = 1 << 20

// bboltOptions are the same for every open but for the limits of size. The
// freelist is written with every commit: log.db has hardly any free page, and
// state.db is written rarely and in big pieces, so that costs little, while a
// freelist that must be found out by reading the file makes opening slow.
func (s *Set) bboltOptions(r format.Role, readOnly bool) *bbolt.Options {
	o := &bbolt.Options{
		Timeout:         s.options.LockTimeout,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: int(s.options.MmapSize),
		ReadOnly:        readOnly,
		NoStatistics:    true,
		MaxSize:         int(s.options.MaxSize),
	}
	switch r {
	case format.RoleLog:
	case format.RoleState:
		o.MaxSize = int(s.options.StateMaxSize)
	case format.RoleSubscriptions:
		o.MaxSize = int(s.options.SubscriptionsMaxSize)
		o.InitialMmapSize = min(o.InitialMmapSize, smallMmapSize)
	case format.RoleIDs:
		o.MaxSize, o.InitialMmapSize = 0, min(o.InitialMmapSize, smallMmapSize)
	}
	return o
}
