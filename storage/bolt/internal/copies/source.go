package copies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/replog"
)

// Source is a store that is in use, as whoever copies it sees it.
type Source struct {
	*files.Set
	// IDs lets a function read ids.db, if there is one. Nobody can number a generator meanwhile.
	IDs func(context.Context, func(*boltfile.File) error) error
	// Last is the last LSN that is published.
	Last func() messages.LSN
}

// Taker takes the files of a store that is in use.
type Taker interface {
	Pages(ctx context.Context, from Pages, r format.Role) error
	Log(ctx context.Context, log *logdb.Log, last messages.LSN) error
}

// Give hands out the files in their order: the log comes last.
func (s *Source) Give(ctx context.Context, to Taker) (given Given, err error) {
	given.Sizes = make(map[format.Role]int64)
	if err := s.giveIDs(ctx, to); err != nil {
		return given, err
	}
	if f := s.Subscriptions.Load(); f != nil {
		given.Sizes[format.RoleSubscriptions] = f.Size()
		if err := to.Pages(ctx, Opened{f}, format.RoleSubscriptions); err != nil {
			return given, err
		}
	}
	given.Sizes[format.RoleState] = s.State.Size()
	if err := to.Pages(ctx, Opened{s.State}, format.RoleState); err != nil {
		return given, err
	}
	given.Last = s.Last()
	// The epochs of a replica's events come to log.db with them.
	if err := s.Log.AwaitOwn(given.Last); err != nil {
		return given, err
	}
	given.Sizes[format.RoleLog] = s.Log.File.Size()
	return given, to.Log(ctx, s.Log, given.Last)
}

// giveIDs hands out ids.db, if there is one. It is small: so it is read first, and who takes it slowly holds nobody up who
// numbers a generator.
func (s *Source) giveIDs(ctx context.Context, to Taker) error {
	var pages bytes.Buffer
	err := s.IDs(ctx, func(f *boltfile.File) error {
		return Opened{f}.writeTo(&copyWriter{ctx: ctx, w: &pages, tell: func(string, uint64, uint64) {}})
	})
	if err != nil || pages.Len() == 0 {
		return err
	}
	return to.Pages(ctx, inMemory(pages.Bytes()), format.RoleIDs)
}

// Given is what the files had that were handed out.
type Given struct {
	Last messages.LSN
	// Sizes are in bytes.
	Sizes map[format.Role]int64
}

// ReplicaSource is a replica that is in use.
type ReplicaSource struct {
	Source
	// Head is that of the last entry that is published.
	Head func() uint64
	// Kept is up to where subscriptions.db has the log, but not beyond a position.
	Kept func(to replog.Position) replog.Position
}

// Seed writes state.db, then log.db: projections must not be ahead. What comes to log.db meanwhile is written, too, and
// subscriptions.db and ids.db when only a little is missing. They may have more than log.db when they are copied, and
// subscriptions.db never has when the copy is complete.
func (s *ReplicaSource) Seed(ctx context.Context, out *Stream) error {
	if err := out.Pages(ctx, Opened{s.State}, format.RoleState); err != nil {
		return err
	}
	if err := out.BeginLog(s.Log.File.Size()); err != nil {
		return err
	}
	next, err := s.writeOwn(ctx, out, 1)
	if err != nil {
		return err
	}
	// Up to there both have everything now. What is behind that the log brings again.
	before, err := s.Log.ReadTail(next)
	if err != nil {
		return err
	}
	kept := s.Kept(before.At)
	if f := s.Subscriptions.Load(); f != nil {
		if err := out.Pages(ctx, Opened{f}, format.RoleSubscriptions); err != nil {
			return err
		}
	}
	if err := s.giveIDs(ctx, out); err != nil {
		return err
	}
	// The pages may have gone to a slow reader.
	if next, err = s.writeOwn(ctx, out, next); err != nil {
		return err
	}
	rest, err := s.Log.ReadTail(next)
	if err != nil {
		return err
	}
	return out.EndLog(&rest, kept)
}

// seedRounds is how often what has come to log.db while the rest of it was written may be no less than the time before.
const seedRounds = 3

// writeOwn writes the events of log.db from an LSN on, until the rest fits into a frame. It returns where that begins.
// ErrOvertaken if the rest does not become less.
func (s *ReplicaSource) writeOwn(ctx context.Context, out *Stream, next messages.LSN) (messages.LSN, error) {
	least, vain := messages.LSN(math.MaxUint64), 0
	for more := true; more; { // what is written meanwhile is less each time, unless it comes faster than it is read
		last, err := s.lastOwn(ctx)
		if err != nil {
			return 0, err
		}
		rest := last + 1 - next
		if rest < least {
			least, vain = rest, 0
		} else if vain++; vain == seedRounds {
			return 0, fmt.Errorf("%w: %d events have come while %d were read", ErrOvertaken, rest, least)
		}
		if more, err = out.Events(ctx, s.Log, next, last); err != nil {
			return 0, err
		}
		next = last + 1
	}
	return next, nil
}

// lastOwn returns the last LSN that log.db has, when it has what was applied before.
func (s *ReplicaSource) lastOwn(ctx context.Context) (messages.LSN, error) {
	if err := s.Log.AwaitEntry(ctx, s.Head()); err != nil {
		return 0, err
	}
	first, _ := s.Log.Pending()
	return first - 1, nil
}

// Quiet copies the files of a store that nobody writes; state.db only if that is wanted.
func (t *Target) Quiet(ctx context.Context, from *files.Set, state bool) (given Given, err error) {
	given.Sizes = make(map[format.Role]int64)
	ids, err := from.OpenIDs(ctx)
	if err != nil {
		return given, err
	}
	if ids != nil {
		if err := errors.Join(t.Entries(ctx, ids, format.RoleIDs, format.KeyLaunches), ids.Close()); err != nil {
			return given, err
		}
	}
	if f := from.Subscriptions.Load(); f != nil {
		given.Sizes[format.RoleSubscriptions] = f.Size()
		if err := t.Entries(ctx, f, format.RoleSubscriptions, format.KeySubscriptions); err != nil {
			return given, err
		}
	}
	if state {
		given.Sizes[format.RoleState] = from.State.Size()
		err := t.Entries(ctx, from.State, format.RoleState, format.KeyDedup, format.KeyProjected, format.KeyWitness)
		if err != nil {
			return given, err
		}
	}
	given.Sizes[format.RoleLog], given.Last = from.Log.File.Size(), from.End
	return given, t.Log(ctx, from.Log, from.End)
}
