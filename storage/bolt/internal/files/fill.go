package files

import (
	"errors"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Fill opens log.db of a store that is being made by itself, to be written, and reads where it ends; it makes what is not
// there. All else is derived from it by who opens the store after that: a state.db that an attempt before has left is
// removed. The descriptor must extend that of the attempt before.
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
	there, err := s.Directory.PresentAs(format.StateFileName)
	if err != nil || !there {
		return err
	}
	return errors.Join(s.Directory.Remove(format.StateFileName), s.Directory.Sync())
}
