package files

import (
	"errors"
	"io/fs"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Fill opens log.db of a store that is being made by itself, to be written, and reads where it ends; it makes what is not
// there. Whoever opens the store after that derives state.db from it, and makes subscriptions.db and ids.db: those that
// an attempt before has left are removed, for they may have what this one has not. The descriptor must extend that of
// the attempt before.
func Fill(dir string, d messages.Descriptor, o Options) (*Set, error) {
	s, err := Hold(dir, o)
	if err != nil {
		return nil, err
	}
	if err := s.fill(&d); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Set) fill(d *messages.Descriptor) error {
	there, err := s.Directory.Present(format.LogFileName)
	if err != nil {
		return err
	}
	if there {
		err = s.fillAgain(d)
	} else {
		err = s.createLogOnly(d)
	}
	if err != nil {
		return err
	}
	return s.ReadEnd()
}

func (s *Set) createLogOnly(d *messages.Descriptor) error {
	if err := s.nothingElse(); err != nil {
		return err
	}
	return s.createLog(d)
}

func (s *Set) fillAgain(d *messages.Descriptor) error {
	h, err := s.inspect(format.RoleLog)
	if err != nil {
		return err
	}
	if err := s.describe(d, &h); err != nil {
		return err
	}
	if err := s.openLog(); err != nil {
		return err
	}
	return s.removeRest()
}

// removeRest removes the files beside log.db. That stays: if this is cut off, the next attempt removes what is still there.
func (s *Set) removeRest() error {
	for _, name := range []string{format.SubscriptionsFileName, format.IDsFileName, format.StateFileName} {
		// What is no file is not removed. One of 0 bytes is.
		if _, err := s.Directory.Present(name); err != nil {
			return err
		}
		if err := s.Directory.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.Directory.Sync()
}
