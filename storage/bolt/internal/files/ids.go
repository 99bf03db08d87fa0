package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/idsdb"
)

// errLostIDs says what to do about an ids.db that is gone.
var errLostIDs = fmt.Errorf("%w: the numbers of generators of ids would begin again, which others of the cluster have: "+
	"let a new node take the place of this one, see docs/cluster.md", format.ErrMissing)

// OpenIDs opens ids.db to be read, nil if there is none, nor was one. It must be of this store, and whole. Close it soon: nobody
// else can write it. The end of the log must have been read.
func (s *Set) OpenIDs(ctx context.Context) (*boltfile.File, error) {
	there, err := s.Directory.PresentWhole(format.IDsFileName)
	switch {
	case err != nil:
		return nil, err
	case !there && s.Log.HasIDs():
		return nil, &storage.DamagedError{Where: "file " + s.Path(format.IDsFileName), Cause: errLostIDs}
	case !there:
		return nil, nil
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
		f, err = s.createLate(format.RoleIDs)
	} else if err = f.Close(); err == nil {
		f, err = s.openAgain(format.RoleIDs)
	}
	if err == nil {
		s.Log.NoteIDs()
	}
	return f, err
}
