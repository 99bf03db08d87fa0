package bolt

import (
	"context"
	"errors"
	"fmt"

	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/idsdb"
)

// NextGenerator takes the number of a generator of decimal ids: it implements ids.GeneratorCounter. Each launch has a
// counter, which begins at 1. A number is durable when it is returned, and never returned again, whatever has crashed.
// The counters are in a file of their own, ids.db, which is made by the first call, and open only as long as a call
// takes: some milliseconds.
//
// With Options.Log the log has the number, too, and no other node gives it again. The owner gives numbers: elsewhere that is
// [replog.ErrNotOwner]. The ids.db of a node may be ahead of that of another one.
//
// It returns ErrOutcomeUnknown if nobody knows whether a number was taken; no generator has it then, and the next call can
// follow. With Options.Log a store whose own disk was the cause closes itself, as [Store.Failed] says. Without space it is
// ErrFull. A store that [Restore] has made gives no number of a launch that its copy knows, since the store that was copied
// may have gone on: it returns the largest uint32, which is beyond all generators. [errors.ErrUnsupported] with
// Options.NoGenerators.
func (s *Store) NextGenerator(ctx context.Context, launch uint32) (uint32, error) {
	if err := s.mayWrite(ctx); err != nil {
		return 0, err
	}
	if s.options.NoGenerators {
		return 0, fmt.Errorf("generators of a part of an application: %w", errors.ErrUnsupported)
	}
	if s.replica != nil {
		return s.replica.nextGenerator(ctx, launch)
	}
	g := format.Generator{Launch: launch}
	if err := s.launches.Next(ctx, &g); err != nil {
		return 0, err
	}
	return g.Number, nil
}

// Launches returns the launches of which generators were numbered, in their order: see [Store.NextGenerator].
func (s *Store) Launches(ctx context.Context) (all []uint32, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	err = s.launches.Read(ctx, func(f *boltfile.File) error {
		launches, err := idsdb.Launches(f)
		for _, l := range launches {
			all = append(all, l.Launch)
		}
		return err
	})
	return all, err
}
