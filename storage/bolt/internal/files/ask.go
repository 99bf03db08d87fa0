package files

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
)

// HoldLog opens a directory and the log.db in it, of which nothing is known yet.
func HoldLog(dir string, o Options) (*Set, error) {
	s, err := Hold(dir, o)
	if err != nil {
		return nil, err
	}
	there, err := s.Directory.Present(format.LogFileName)
	if err == nil && !there {
		err = fmt.Errorf("%w: %s", storage.ErrNotFound, s.Path(format.LogFileName))
	}
	if err == nil {
		err = s.openLogToRead()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Set) openLogToRead() error {
	f, err := s.OpenFile(format.RoleLog, true)
	if err == nil {
		s.Log = logdb.New(f, s.Directory)
	}
	return err
}

// ReadLog reads the header of log.db, and with log.wal where the log ends.
func (s *Set) ReadLog() error {
	h, err := s.Log.File.ReadHeader(format.RoleLog)
	if err != nil {
		return err
	}
	s.ID, s.Descriptor = h.ID, h.Descriptor
	return s.ReadEnd()
}

// AskState asks the state.db beside a log, if there is one, whether it is of this log, and the log is whole. unread
// says why it could not be asked.
func (s *Set) AskState() (unread, err error) {
	path := s.Path(format.StateFileName)
	there, err := s.Directory.PresentWhole(format.StateFileName)
	if err == nil && there {
		err = s.compareState()
	}
	switch {
	case err == nil, errors.Is(err, storage.ErrLocked):
		return nil, err
	case errors.Is(err, ErrLostEnd), errors.Is(err, ErrOtherLog):
		return nil, fmt.Errorf("%w; whoever knows that %s is the wrong file moves it away", err, path)
	case errors.Is(err, storage.ErrDamaged), errors.Is(err, storage.ErrForeign), errors.Is(err, storage.ErrFormat),
		errors.Is(err, calendar.ErrZone):
		return err, nil
	}
	return nil, fmt.Errorf("%w; without %s nobody asks whether %s is whole", err, path, format.LogFileName)
}

// compareState compares state.db with the log.
func (s *Set) compareState() error {
	err := s.readState()
	if errors.Is(err, ErrOtherLog) {
		return err
	}
	return cmp.Or(s.checkStated(), err)
}

// OpenSubscriptions opens the subscriptions.db beside a log to be read, if there is one. It must be of the same store.
func (s *Set) OpenSubscriptions() error {
	if there, err := s.Directory.PresentWhole(format.SubscriptionsFileName); err != nil || !there {
		return err
	}
	f, err := s.OpenFile(format.RoleSubscriptions, true)
	if err != nil {
		return err
	}
	s.Subscriptions.Store(f)
	h, err := f.ReadHeader(format.RoleSubscriptions)
	if err == nil {
		err = s.sameStore(format.RoleSubscriptions, &h)
	}
	return err
}

// readState opens state.db, and reads how far it is.
func (s *Set) readState() error {
	h, err := s.openState()
	if err != nil {
		return err
	}
	if err := s.knowsAll(&h); err != nil {
		return err
	}
	st, err := s.Stand()
	if err != nil {
		return err
	}
	return s.CheckOrigin(st)
}

// openState opens the state.db of this store to be read. An error says what is wrong with it.
func (s *Set) openState() (h format.Header, err error) {
	if s.State, err = s.OpenFile(format.RoleState, true); err != nil {
		return h, err
	}
	if h, err = s.State.ReadHeader(format.RoleState); err == nil {
		err = s.sameStore(format.RoleState, &h)
	}
	return h, err
}

// checkStated is checkProjected for a state.db of which not everything can be read. Nothing is
// asked of one that may be another store's, or that bbolt cannot read and end.
func (s *Set) checkStated() error {
	if s.State == nil || !s.State.Ends() {
		return nil
	}
	if h, _ := s.State.Header(format.RoleState); h.ID != s.ID {
		return nil
	}
	return s.endsBehind(s.stated())
}

// CheckEnd checks what log.wal has behind the end of log.db, and that the log has all of which state.db
// can say that it had. A damaged log.db does not say where its end is.
func (s *Set) CheckEnd() error {
	if err := s.openLogToRead(); err != nil {
		return err
	}
	err := s.ReadLog()
	if err == nil {
		// What is wrong with state.db is told with its pages.
		_, _ = s.openState()
		err = s.checkStated()
	}
	return err
}

// RolesThere returns which files are there. Opening says what it means that one is not.
func (s *Set) RolesThere() (roles []format.Role, err error) {
	for _, role := range []format.Role{format.RoleLog, format.RoleState, format.RoleSubscriptions, format.RoleIDs} {
		there, err := s.Directory.PresentAs(role.FileName())
		damaged := errors.Is(err, storage.ErrDamaged)
		if err != nil && !damaged {
			return nil, err
		}
		if there || damaged {
			roles = append(roles, role)
		}
	}
	return roles, nil
}
