package files

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// inspect reads a file's header through a read-only handle, and makes sure that what is
// behind it can be read, and written.
func (s *Set) inspect(r format.Role) (format.Header, error) {
	f, err := s.OpenFile(r, true)
	if err != nil {
		return format.Header{}, err
	}
	h, err := f.ReadHeader(r)
	if err == nil && !s.options.ReadOnly {
		err = f.CheckFreelist()
	}
	return h, errors.Join(err, f.Close())
}

// openAgain opens a file whose header was found right, and makes sure that it is
// still the same.
func (s *Set) openAgain(r format.Role) (*boltfile.File, error) {
	f, err := s.OpenFile(r, s.options.ReadOnly)
	if err != nil {
		return nil, err
	}
	h, err := f.ReadHeader(r)
	if err == nil && h.ID != s.ID {
		err = fmt.Errorf("%w: %s was exchanged while it was opened", storage.ErrForeign, f.Name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sameStore makes sure that a file is of the store that the log is of.
func (s *Set) sameStore(r format.Role, h *format.Header) error {
	if h.ID == s.ID {
		return nil
	}
	return fmt.Errorf("%w: %s is of store %v, %s of store %v",
		storage.ErrForeign, s.Path(r.FileName()), h.ID, format.LogFileName, s.ID)
}

// knowsAll makes sure that state.db has no kind or sequence that is not known.
func (s *Set) knowsAll(state *format.Header) error {
	if err := s.Descriptor.Extends(&state.Descriptor); err != nil {
		return fmt.Errorf("%w: %s: %w", storage.ErrForeign, s.Path(format.StateFileName), err)
	}
	return nil
}

func sameDescriptor(a, b *messages.Descriptor) bool {
	return bytes.Equal(format.AppendDescriptor(nil, a), format.AppendDescriptor(nil, b))
}

// WriteHeaders writes the descriptor to the headers that have an older one.
func (s *Set) WriteHeaders() error {
	if s.options.ReadOnly {
		return nil
	}
	if s.staleLog {
		if err := s.writeHeader(s.Log.File, format.RoleLog); err != nil {
			return err
		}
	}
	if s.staleState {
		return s.writeHeader(s.State, format.RoleState)
	}
	return nil
}

func (s *Set) writeHeader(f *boltfile.File, r format.Role) error {
	h := format.Header{Role: r, ID: s.ID, Descriptor: s.Descriptor}
	return f.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketHeader).Put(format.KeyHeader, h.Encode())
	})
}
