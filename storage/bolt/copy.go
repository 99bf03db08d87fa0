package bolt

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/copies"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/verify"
)

// CopyOptions say how a copy of a store is made.
type CopyOptions struct {
	// SkipVerify leaves the check of the copy out.
	SkipVerify bool
	// Verify are the options of the check.
	Verify verify.Options
	// TailEvents is how many events [Restore] projects at a time while it rebuilds state.db; with
	// fewer it takes less memory and, where workspaces come in no order, longer. Default
	// 131,072, as in [Options].
	TailEvents int
	// Progress is called now and then. Default: nobody is told.
	Progress func(CopyProgress)
}

// CopyProgress is how far a copy has come.
type CopyProgress struct {
	// Phase is what is being done: "copy ids.db", "copy subscriptions.db", "copy state.db", "copy log.db",
	// "rebuild state.db".
	Phase string
	// Done and Total are events of log.db or bytes of the others; a Total of 0 is not known.
	Done, Total uint64
}

// Copied is what was copied.
type Copied struct {
	// ID is the copy's store id, Events is how many it has.
	ID     string
	Events messages.LSN
	// The sizes of the files are in bytes.
	LogFrom, LogTo, StateFrom, StateTo int64
	// These are 0 without subscriptions.
	SubscriptionsFrom, SubscriptionsTo int64
	// StateUnread is why [Restore] could not ask the state.db beside the log whether the log is whole; nil if it
	// could, or if there is none.
	StateUnread error
	// Position is where the replicated log goes on for what [ReadSeed] has made.
	Position replog.Position
	// Report is what the check of the copy found; zero if it was left out.
	Report verify.Report
}

// copying is a copy that is being made.
type copying struct {
	o      CopyOptions
	result Copied
	target copies.Target
}

func newCopying(o CopyOptions) *copying {
	if o.Progress == nil {
		o.Progress = func(CopyProgress) {}
	}
	return &copying{o: o}
}

// of says whose copy it is: with the id and the descriptor of a store, but for the id that [Restore] draws.
func (c *copying) of(id format.StoreID, f *files.Set) {
	c.result.ID = id.String()
	c.target = copies.Target{ID: id, Descriptor: f.Descriptor, Options: reading(), Tell: c.tell}
}

func (c *copying) tell(name string, done, total uint64) {
	c.o.Progress(CopyProgress{Phase: "copy " + name, Done: done, Total: total})
}

// into lets build make the copy in a directory, which must be new or empty, and checks it.
func (c *copying) into(ctx context.Context, dir string, build func(temporary *boltfile.Directory) error) error {
	return copies.Into(dir, func(temporary *boltfile.Directory) error {
		if err := build(temporary); err != nil {
			return err
		}
		return c.check(ctx, temporary)
	})
}

// check checks the copy, unless that is to be left out.
func (c *copying) check(ctx context.Context, d *boltfile.Directory) error {
	c.result.LogTo, c.result.StateTo = d.SizeOf(format.RoleLog), d.SizeOf(format.RoleState)
	c.result.SubscriptionsTo = d.SizeOf(format.RoleSubscriptions)
	if c.o.SkipVerify {
		return nil
	}
	report, err := Verify(ctx, d.Path, c.o.Verify)
	c.result.Report = report
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		return fmt.Errorf("the copy is not kept: %w", err)
	}
	return nil
}

// Backup writes a copy of the store to a directory, which must be new or empty: its
// files, synced, and checked unless the options say otherwise. The store can be in use.
// A copy whose check finds a fault, or that is not finished, is not kept.
//
// ids.db and subscriptions.db, if there, are copied first, then state.db, and log.db after them, so
// that neither the subscriptions nor the projections of the copy are ever ahead of its log;
// opening the copy reads what the projections lack. Both are copied under one read transaction,
// page by page: meanwhile flushes do not use pages again, and wait if the file outgrows
// Options.MmapSize; appends go on up to the limits of the tail.
// log.db is copied in short transactions, which hold nobody up.
func (s *Store) Backup(ctx context.Context, dir string, o CopyOptions) (Copied, error) {
	c := newCopying(o)
	if err := s.enter(ctx); err != nil {
		return c.result, err
	}
	c.of(s.files.ID, s.files)
	err := c.into(ctx, dir, func(temporary *boltfile.Directory) error {
		c.target.Directory = temporary
		return c.inUse(ctx, s, &c.target)
	})
	return c.result, err
}

// taker takes the files of a store that is in use.
type taker interface {
	Pages(ctx context.Context, from *boltfile.File, r format.Role) error
	Log(ctx context.Context, log *logdb.Log, last messages.LSN) error
}

// inUse hands out the files of a store in their order: the log comes last.
func (c *copying) inUse(ctx context.Context, s *Store, to taker) error {
	err := s.launches.Read(ctx, func(f *boltfile.File) error { return to.Pages(ctx, f, format.RoleIDs) })
	if err != nil {
		return err
	}
	if f := s.files.Subscriptions.Load(); f != nil {
		c.result.SubscriptionsFrom = f.Size()
		if err := to.Pages(ctx, f, format.RoleSubscriptions); err != nil {
			return err
		}
	}
	c.result.StateFrom = s.state.Size()
	if err := to.Pages(ctx, s.state, format.RoleState); err != nil {
		return err
	}
	c.result.Events = messages.LSN(s.lastLSN.Load())
	// The epochs of a replica's events come to log.db with them.
	if err := s.log.AwaitOwn(c.result.Events); err != nil {
		return err
	}
	c.result.LogFrom = s.log.File.Size()
	return to.Log(ctx, s.log, c.result.Events)
}

// log copies the log up to an LSN.
func (c *copying) log(ctx context.Context, log *logdb.Log, last messages.LSN) error {
	c.result.LogFrom, c.result.Events = log.File.Size(), last
	return c.target.Log(ctx, log, last)
}

// ids copies the ids.db of a store that nobody writes, if it has one.
func (c *copying) ids(ctx context.Context, from *files.Set) error {
	f, err := from.OpenIDs(ctx)
	if f == nil || err != nil {
		return err
	}
	return errors.Join(c.target.Entries(ctx, f, format.RoleIDs, format.KeyLaunches), f.Close())
}

// subscriptions copies those of a store that nobody writes, if it has any.
func (c *copying) subscriptions(ctx context.Context, f *boltfile.File) error {
	if f == nil {
		return nil
	}
	c.result.SubscriptionsFrom = f.Size()
	return c.target.Entries(ctx, f, format.RoleSubscriptions, format.KeySubscriptions)
}

// Compact writes a copy of the store in a directory to another one, which must be new or
// empty, without the pages that are free. Nobody may have the store open for writing; it
// is not changed. The copy has the same store id. What is not finished, or has a fault,
// is not kept.
func Compact(ctx context.Context, from, to string, o CopyOptions) (Copied, error) {
	c := newCopying(o)
	s, err := OpenExisting(ctx, from, Options{ReadOnly: true})
	if err != nil {
		return c.result, err
	}
	c.of(s.files.ID, s.files)
	err = c.into(ctx, to, func(temporary *boltfile.Directory) error {
		if at := s.log.Position; at.Head > 0 {
			return fmt.Errorf("%w: a compact copy would be the same store without its replicated log", ErrReplica)
		}
		c.target.Directory = temporary
		if err := c.ids(ctx, s.files); err != nil {
			return err
		}
		if err := c.subscriptions(ctx, s.files.Subscriptions.Load()); err != nil {
			return err
		}
		c.result.StateFrom = s.state.Size()
		err := c.target.Entries(ctx, s.state, format.RoleState, format.KeyDedup, format.KeyProjected, format.KeyWitness)
		if err != nil {
			return err
		}
		return c.log(ctx, s.log, s.files.End)
	})
	return c.result, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
}

// Restore makes a store of a copy: log.db with a new store id, and state.db rebuilt from
// it, since the index of deduplication ids in it depends on the store's id. Of the copy
// only log.db is needed, and log.wal if it has one; it is not changed; its subscriptions are carried over if
// subscriptions.db is there too, and so are the launches of ids.db, which give no number any more (see
// [Store.NextGenerator]): a damaged one is an error, and goes on being one until it is taken away. The
// directory must be new or empty. What is not finished, or has a fault, is not kept.
//
// If state.db is there too, it is asked whether the log is the one that it was made from, and whole: a log that has
// lost its end would give its last numbers again. If it says no, that is a [*storage.DamagedError]; whoever
// knows that state.db is the wrong file moves it away. If it cannot be asked, since it is damaged, another
// store's, or newer than the log, [Copied.StateUnread] says why; that the system cannot read it is an error.
func Restore(ctx context.Context, from, to string, o CopyOptions) (Copied, error) {
	c := newCopying(o)
	f, err := files.HoldLog(from, reading())
	if err != nil {
		return c.result, err
	}
	err = c.into(ctx, to, func(temporary *boltfile.Directory) error { return c.restore(ctx, f, temporary) })
	return c.result, errors.Join(err, f.Close())
}

func (c *copying) restore(ctx context.Context, from *files.Set, dir *boltfile.Directory) (err error) {
	if err := from.ReadLog(); err != nil {
		return err
	}
	if c.result.StateUnread, err = from.AskState(); err != nil {
		return err
	}
	var id format.StoreID
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	c.of(id, from)
	c.target.Directory = dir
	if err := c.ids(ctx, from); err != nil {
		return err
	}
	if err := from.OpenSubscriptions(); err != nil {
		return err
	}
	if err := c.subscriptions(ctx, from.Subscriptions.Load()); err != nil {
		return err
	}
	if err := c.log(ctx, from.Log, from.End); err != nil {
		return err
	}
	s, err := OpenExisting(ctx, dir.Path, Options{TailEvents: c.o.TailEvents, Progress: func(p Progress) {
		c.o.Progress(CopyProgress{Phase: "rebuild " + format.StateFileName, Done: p.Done, Total: p.Total})
	}})
	if err != nil {
		return err
	}
	return errors.Join(s.subscriptions.CheckOwn(), s.launches.Close(ctx), s.Close(context.WithoutCancel(ctx)))
}

// WriteBackup writes a copy of the store as a stream, which [ReadBackup] makes a store of, perhaps on another machine.
// The store can be in use; what [Store.Backup] says of that holds here, too: while the pages of state.db are
// written, flushes do not use pages again, so that a slow reader lets the file grow. Of the options only Progress is
// used. After an error the stream is no whole backup, and whoever reads it is told so.
func (s *Store) WriteBackup(ctx context.Context, w io.Writer, o CopyOptions) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	c := newCopying(o)
	out, err := copies.NewStream(w, s.files.ID, s.files.Descriptor, c.tell)
	if err != nil {
		return err
	}
	if err := c.inUse(ctx, s, out); err != nil {
		return err
	}
	return out.End()
}

// ReadBackup makes a copy of a store of what [Store.WriteBackup] writes, in a directory, which must be new or empty.
// What it makes is what [Store.Backup] makes, and is checked and kept as that is: there is a whole copy under the name,
// or nothing.
//
// Errors: ErrStream if the stream is cut off or changed; ErrExists; verify.ErrFaults; those of the file system, of the
// reader and of ctx.
func ReadBackup(ctx context.Context, r io.Reader, dir string, o CopyOptions) (Copied, error) {
	return receive(ctx, dir, o, func(t *copies.Target) (copies.Received, error) { return t.Receive(ctx, r) })
}

func receive(
	ctx context.Context, dir string, o CopyOptions, from func(*copies.Target) (copies.Received, error),
) (Copied, error) {
	c := newCopying(o)
	c.target = copies.Target{Options: reading(), Tell: c.tell}
	err := c.into(ctx, dir, func(temporary *boltfile.Directory) error {
		c.target.Directory = temporary
		got, err := from(&c.target)
		c.result.Position = got.Kept
		c.result.ID, c.result.Events = got.ID.String(), got.Last
		c.result.LogFrom, c.result.StateFrom = got.Sizes[format.RoleLog], got.Sizes[format.RoleState]
		c.result.SubscriptionsFrom = got.Sizes[format.RoleSubscriptions]
		return err
	})
	return c.result, err
}
