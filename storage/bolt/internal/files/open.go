package files

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
)

// ErrNoState is returned when a store is to be opened read-only and state.db is not there.
var ErrNoState = errors.New("state.db is missing")

// Open opens the files of a store. It finds out what is there without changing anything, and creates what is missing: the
// store too, if there is none and the options say so. The descriptor that is wanted must extend the one that the store
// was made with. If it is nil, the store's own is wanted, and no store is created.
func Open(ctx context.Context, dir string, wanted *messages.Descriptor, o Options) (*Set, error) {
	s, err := open(ctx, dir, wanted, o)
	if wanted != nil && !o.ReadOnly && errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("%w: is the path right, and its volume mounted? Only Options.Create makes a new store", err)
	}
	return s, err
}

func open(ctx context.Context, dir string, wanted *messages.Descriptor, o Options) (*Set, error) {
	mayCreate := wanted != nil && o.Create && !o.ReadOnly
	s, err := Hold(dir, o)
	if mayCreate && errors.Is(err, storage.ErrNotFound) {
		// What is refused leaves no directory behind.
		if err := wanted.CheckNames(nil); err != nil {
			return nil, err
		}
		if err := boltfile.MakeDirs(dir, boltfile.SyncAbove); err != nil {
			return nil, err
		}
		s, err = Hold(dir, o)
	}
	if err != nil {
		return nil, err
	}
	if err := s.open(wanted, mayCreate); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.checkSubscriptions(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Set) open(wanted *messages.Descriptor, mayCreate bool) error {
	logThere, err := s.Directory.Present(format.LogFileName)
	if err != nil {
		return err
	}
	stateThere, err := s.Directory.Present(format.StateFileName)
	if err != nil {
		return err
	}
	if logThere {
		return s.openExisting(wanted, stateThere)
	}
	if err := s.nothingElse(); err != nil {
		return err
	}
	if !mayCreate {
		return fmt.Errorf("%w: %s", storage.ErrNotFound, s.Directory.Path)
	}
	if err := wanted.CheckNames(nil); err != nil {
		return err
	}
	return s.createStore(wanted)
}

func (s *Set) createStore(wanted *messages.Descriptor) error {
	// Whoever made the directory may have been killed before this.
	if err := boltfile.SyncAbove(filepath.Dir(s.Directory.Path)); err != nil {
		return err
	}
	err := s.createLog(wanted)
	if err == nil {
		s.State, err = s.create(format.RoleState)
	}
	return err
}

func (s *Set) createLog(wanted *messages.Descriptor) error {
	s.Descriptor = *wanted
	if _, err := rand.Read(s.ID[:]); err != nil {
		return err
	}
	log, err := s.create(format.RoleLog)
	if err == nil {
		s.Log = logdb.New(log, s.Directory)
	}
	return err
}

// openExisting opens the files of a store. Both headers are read before either
// file is opened for writing.
func (s *Set) openExisting(wanted *messages.Descriptor, stateThere bool) error {
	logHeader, err := s.inspect(format.RoleLog)
	if err != nil {
		return err
	}
	if err := s.describe(wanted, &logHeader); err != nil {
		return err
	}
	stateOld := false
	if stateThere {
		if stateOld, err = s.inspectState(&logHeader); err != nil {
			return err
		}
	}
	if err := s.mayRebuild(stateThere, stateOld); err != nil {
		return err
	}
	subscriptionsThere, err := s.inspectSubscriptions()
	if err != nil {
		return err
	}
	if err := s.openLog(); err != nil {
		return err
	}
	if subscriptionsThere {
		if err := s.openSubscriptions(); err != nil {
			return err
		}
	}
	if stateThere && !stateOld {
		s.State, err = s.openAgain(format.RoleState)
		return err
	}
	if stateOld {
		if err := s.leaveOldState(); err != nil {
			return err
		}
	}
	s.StateIsNew = true
	s.State, err = s.create(format.RoleState)
	return err
}

// describe takes over whose store it is, and what the descriptor that is wanted changes.
func (s *Set) describe(wanted *messages.Descriptor, log *format.Header) error {
	s.ID, s.Descriptor, s.Found = log.ID, log.Descriptor, &log.Descriptor
	if wanted != nil {
		if err := s.extend(wanted); err != nil {
			return err
		}
	}
	s.staleLog = log.Format < format.Version || !sameDescriptor(&s.Descriptor, &log.Descriptor)
	return nil
}

// extend lets the store have what a descriptor adds. One that has less than the store, or smaller limits, may be an older
// program's, which may have the store as it is, or one from which somebody has taken away: nobody can tell.
func (s *Set) extend(wanted *messages.Descriptor) error {
	err := cmp.Or(wanted.Extends(&s.Descriptor), wanted.CheckNames(&s.Descriptor))
	switch {
	case err == nil:
		s.Descriptor = wanted.Over(&s.Descriptor)
		return nil
	case s.Descriptor.Covers(wanted) != nil:
		return err
	case s.options.AcceptNewer:
		return nil
	}
	return fmt.Errorf("%w: what a store has is never taken away or lowered: put it back; "+
		"or, if a newer program has added it, run that one, or open the store with Options.AcceptNewer", err)
}

// mayRebuild returns why a state.db that is not there, or is of an older format, cannot be made anew, nil if it need not be.
func (s *Set) mayRebuild(there, old bool) error {
	switch {
	case there && !old, !s.options.ReadOnly:
		return nil
	case old:
		return fmt.Errorf("%w: %s: the projections of an older format can only be rebuilt by a store that may write",
			storage.ErrFormat, s.Path(format.StateFileName))
	}
	return fmt.Errorf("%w: %w: %s: the projections can only be rebuilt by a store that may write",
		storage.ErrNotFound, ErrNoState, s.Path(format.StateFileName))
}

// inspectState reads the header of state.db, and reports whether it is of an older format, or beside a log of one: programs
// of a log of format 4 may have passed over moves, and then what they have flushed is not what the log says.
func (s *Set) inspectState(log *format.Header) (old bool, err error) {
	h, err := s.inspect(format.RoleState)
	if err != nil {
		return false, err
	}
	if err := s.sameStore(format.RoleState, &h); err != nil {
		return false, err
	}
	if err := s.knowsAll(&h); err != nil {
		return false, err
	}
	old = h.Format < format.StateFormat
	old = old || log.Format < format.Version && !s.options.ReadOnly
	s.staleState = !old && !sameDescriptor(&s.Descriptor, &h.Descriptor)
	return old, nil
}

// leaveOldState removes a state.db of an older format: the log has all of it. Before that it is asked whether the log is
// its own, and whole.
func (s *Set) leaveOldState() error {
	err := s.ReadEnd()
	if err == nil {
		err = s.readState()
	}
	if s.State != nil {
		err = errors.Join(err, s.State.Close())
		s.State = nil
	}
	if err != nil {
		return err
	}
	return errors.Join(s.Directory.Remove(format.StateFileName), s.Directory.Sync())
}

// openLog opens log.db.
func (s *Set) openLog() error {
	f, err := s.openAgain(format.RoleLog)
	if err == nil {
		s.Log = logdb.New(f, s.Directory)
	}
	return err
}

// ReadEnd reads where the log ends, once.
func (s *Set) ReadEnd() (err error) {
	if s.endRead {
		return nil
	}
	s.End, err = s.Log.Load(s.ID)
	s.endRead = err == nil
	return err
}

// nothingElse makes sure that no other file of a store is there without its log.
func (s *Set) nothingElse() error {
	for _, name := range []string{format.WALFileName, format.StateFileName, format.SubscriptionsFileName, format.IDsFileName} {
		there, err := s.Directory.PresentAs(name)
		if err != nil {
			return err
		}
		if there {
			return &storage.DamagedError{
				Where: "file " + s.Path(format.LogFileName),
				Cause: fmt.Errorf("%w, and there is a %s", format.ErrMissing, name),
			}
		}
	}
	return nil
}

// inspectSubscriptions reads the header of subscriptions.db, if it is there. The descriptor
// in it is that of the day on which it was made.
func (s *Set) inspectSubscriptions() (there bool, err error) {
	if there, err = s.Directory.PresentWhole(format.SubscriptionsFileName); err != nil || !there {
		return false, err
	}
	h, err := s.inspect(format.RoleSubscriptions)
	if err != nil {
		return true, err
	}
	if h.Format < format.SubscriptionsFormat {
		s.OldSubscriptions = &h
	}
	if err := s.sameStore(format.RoleSubscriptions, &h); err != nil {
		return true, err
	}
	plain := s.Descriptor.WithoutRules()
	if err := plain.Extends(&h.Descriptor); err != nil {
		return true, fmt.Errorf("%w: %s: %w", storage.ErrForeign, s.Path(format.SubscriptionsFileName), err)
	}
	return true, nil
}

// openSubscriptions opens the file that was found right.
func (s *Set) openSubscriptions() error {
	f, err := s.openAgain(format.RoleSubscriptions)
	if err == nil {
		s.Subscriptions.Store(f)
	}
	return err
}

// checkSubscriptions checks the pages of the file. What a damaged page hides would be
// delivered again from the beginning; and the file is small.
func (s *Set) checkSubscriptions(ctx context.Context) error {
	f := s.Subscriptions.Load()
	if f == nil {
		return nil
	}
	return f.CheckPages(ctx, nil, nil)
}

// OpenLog opens log.db of a store, and its subscriptions.db, and reads where the log ends. Nothing is changed.
func OpenLog(dir string, o Options) (*Set, error) {
	s, err := Hold(dir, o)
	if err != nil {
		return nil, err
	}
	if err := s.openLogOnly(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Set) openLogOnly() error {
	there, err := s.Directory.Present(format.LogFileName)
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("%w: %s", storage.ErrNotFound, s.Directory.Path)
	}
	h, err := s.inspect(format.RoleLog)
	if err != nil {
		return err
	}
	s.ID, s.Descriptor = h.ID, h.Descriptor
	subscriptionsThere, err := s.inspectSubscriptions()
	if err != nil {
		return err
	}
	if err := s.openLog(); err != nil {
		return err
	}
	if subscriptionsThere {
		return s.openSubscriptions()
	}
	return nil
}
