package bolt

import (
	"context"
	"errors"

	"github.com/partita-go/partita/storage/bolt/internal/copies"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/idsdb"
)

// NextGenerator takes the number of a generator of decimal ids: it implements ids.GeneratorCounter. Each launch has a
// counter, which begins at 1. A number is durable when it is returned, and never returned again, whatever has crashed.
// The counters are in a file of their own, ids.db, which is made by the first call, and open only as long as a call
// takes: some milliseconds.
//
// It returns ErrOutcomeUnknown if nobody knows whether a number was taken; no generator has it then, and the next call can
// follow. A store that [Restore] has made gives no number of a launch that its copy knows, since the store that was copied
// may have gone on: it returns the largest uint32, which is beyond all generators.
func (s *Store) NextGenerator(ctx context.Context, launch uint32) (uint32, error) {
	if err := s.mayWrite(ctx); err != nil {
		return 0, err
	}
	release, err := s.takeIDs(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	f, err := s.files.MakeIDs(ctx)
	if err != nil {
		return 0, err
	}
	n, err := idsdb.Next(f, launch)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

// takeIDs waits until nobody else has ids.db. It returns ErrClosed once the store is closing.
func (s *Store) takeIDs(ctx context.Context) (release func(), err error) {
	select {
	case s.ids <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release = func() { <-s.ids }
	if err := s.open(); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// backupIDs copies ids.db, if there is one.
func (s *Store) backupIDs(ctx context.Context, to *copies.Target) error {
	release, err := s.takeIDs(ctx)
	if err != nil {
		return err
	}
	defer release()
	f, err := s.files.OpenIDs(ctx)
	if f == nil || err != nil {
		return err
	}
	return errors.Join(to.Pages(ctx, f, format.RoleIDs), f.Close())
}

// ids copies the ids.db of a store that nobody writes, if it has one.
func (c *copying) ids(ctx context.Context, from *files.Set) error {
	f, err := from.OpenIDs(ctx)
	if f == nil || err != nil {
		return err
	}
	return errors.Join(c.target.Entries(ctx, f, format.RoleIDs, format.KeyLaunches), f.Close())
}

// closeLaunches lets no launch that is there give a number any more.
func (s *Store) closeLaunches(ctx context.Context) error {
	there, err := s.files.Directory.PresentWhole(format.IDsFileName)
	if !there || err != nil {
		return err
	}
	f, err := s.files.MakeIDs(ctx)
	if err != nil {
		return err
	}
	return errors.Join(idsdb.Close(f), f.Close())
}
