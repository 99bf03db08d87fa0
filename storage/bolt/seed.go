package bolt

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/copies"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// WriteSeed writes a copy of a replica as a stream, of which [ReadSeed] makes a replica of the same log for another node. The
// store can be in use, and need not lead; what [Store.WriteBackup] says of that holds here, too. The copy is as of a moment
// near the end: the node that gets it must not be further behind than the others keep entries of the log.
//
// [ErrReplica] if the store has no Options.Log, [ErrOvertaken] if w takes less than the store gets. Of the options only
// Progress is used.
func (s *Store) WriteSeed(ctx context.Context, w io.Writer, o CopyOptions) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if s.replica == nil {
		return fmt.Errorf("%w: this store is none", ErrReplica)
	}
	c := newCopying(o)
	out, err := copies.NewSeed(w, s.files.ID, s.files.Descriptor, c.tell)
	if err != nil {
		return err
	}
	if err := c.seed(ctx, s, out); err != nil {
		return err
	}
	return out.End()
}

// seed writes state.db, then log.db: projections must not be ahead. What comes to log.db meanwhile is written, too, and
// subscriptions.db when only a little is missing. It may have more than log.db when it is copied, and never has when the
// copy is complete.
func (c *copying) seed(ctx context.Context, s *Store, out *copies.Stream) error {
	err := s.launches.Read(ctx, func(f *boltfile.File) error { return out.Pages(ctx, f, format.RoleIDs) })
	if err != nil {
		return err
	}
	if err := out.Pages(ctx, s.state, format.RoleState); err != nil {
		return err
	}
	if err := out.BeginLog(s.log.File.Size()); err != nil {
		return err
	}
	next, err := s.writeOwn(ctx, out, 1)
	if err != nil {
		return err
	}
	// Up to there subscriptions.db has everything now. What is behind that the log brings again.
	before, err := s.log.ReadTail(next)
	if err != nil {
		return err
	}
	kept := s.subscriptions.Kept(before.At)
	if f := s.files.Subscriptions.Load(); f != nil {
		if err := out.Pages(ctx, f, format.RoleSubscriptions); err != nil {
			return err
		}
	}
	// The pages may have gone to a slow reader.
	if next, err = s.writeOwn(ctx, out, next); err != nil {
		return err
	}
	rest, err := s.log.ReadTail(next)
	if err != nil {
		return err
	}
	return out.EndLog(&rest, kept)
}

// seedRounds is how often what has come to log.db while the rest of it was written may be no less than the time before.
const seedRounds = 3

// writeOwn writes the events of log.db from an LSN on, until the rest fits into a frame. It returns where that begins.
// ErrOvertaken if the rest does not become less.
func (s *Store) writeOwn(ctx context.Context, out *copies.Stream, next messages.LSN) (messages.LSN, error) {
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
		if more, err = out.Events(ctx, s.log, next, last); err != nil {
			return 0, err
		}
		next = last + 1
	}
	return next, nil
}

// lastOwn returns the last LSN that log.db has, when it has what was applied before.
func (s *Store) lastOwn(ctx context.Context) (messages.LSN, error) {
	if err := s.log.AwaitEntry(ctx, s.replica.head.Load()); err != nil {
		return 0, err
	}
	first, _ := s.log.Pending()
	return first - 1, nil
}

// ReadSeed makes a replica of what [Store.WriteSeed] writes, in a directory, which must be new or empty: for a node whose
// replica is too far behind ([replog.ErrBehind]), differs ([replog.ErrDiverged]), or is lost with its disk, when its old
// directory is out of the way. [Copied.Position] is where the log must go on: its own side of the log must be told, before
// [Open] starts it there (raftlog.Seed; raftlog.Join for a new node).
//
// What it makes is checked and kept as by [ReadBackup], and the errors are the same.
func ReadSeed(ctx context.Context, r io.Reader, dir string, o CopyOptions) (Copied, error) {
	return receive(ctx, dir, o, func(t *copies.Target) (copies.Received, error) { return t.ReceiveSeed(ctx, r) })
}
