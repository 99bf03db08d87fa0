package files

import (
	"context"
	"errors"

	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/idsdb"
)

// OpenIDs opens ids.db to be read, nil if there is none. It must be of this store, and whole. Close it soon: nobody else
// can write it.
func (s *Set) OpenIDs(ctx context.Context) (*boltfile.File, error) {
	if there, err := s.Directory.PresentWhole(format.IDsFileName); err != nil || !there {
		return nil, err
	}
	f, err := s.OpenFile(format.RoleIDs, true)
	if err != nil {
		return nil, err
	}
	h, err := f.ReadHeader(format.RoleIDs)
	if err == nil {
		err = s.sameStore(format.RoleIDs, &h)
	}
	if err == nil {
		err = f.CheckPages(ctx, nil, nil)
	}
	if err == nil {
		err = idsdb.Check(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// MakeIDs opens ids.db to be written, and makes it if it is not there.
func (s *Set) MakeIDs(ctx context.Context) (*boltfile.File, error) {
	if err := s.Log.InPlace(); err != nil {
		return nil, err
	}
	// What is damaged must not be opened to be written.
	f, err := s.OpenIDs(ctx)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return s.createLate(format.RoleIDs)
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return s.openAgain(format.RoleIDs)
}
