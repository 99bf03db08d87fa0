package bolt

import (
	"context"
	"errors"

	"github.com/partita-go/partita/storage/bolt/internal/idsdb"
)

// Launches returns the launches of which generators were numbered, in their order: see [Store.NextGenerator].
func (s *Store) Launches(ctx context.Context) ([]uint32, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	release, err := s.takeIDs(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	f, err := s.files.OpenIDs(ctx)
	if f == nil || err != nil {
		return nil, err
	}
	all, err := idsdb.Launches(f)
	return all, errors.Join(err, f.Close())
}

// takeOverLaunches notes launches of another store: none of them gives a number here.
func (s *Store) takeOverLaunches(ctx context.Context, launches []uint32) error {
	if len(launches) == 0 {
		return nil
	}
	f, err := s.files.MakeIDs(ctx)
	if err != nil {
		return err
	}
	for i := 0; err == nil && i < len(launches); i++ {
		_, err = idsdb.Next(f, launches[i])
	}
	if err == nil {
		err = idsdb.Close(f)
	}
	return errors.Join(err, f.Close())
}
