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
		given, err := sourceOf(s).Give(ctx, &c.target)
		c.took(&given)
		return err
	})
	return c.result, err
}

// sourceOf is the store as its copies see it.
func sourceOf(s *Store) *copies.Source {
	return &copies.Source{Set: s.files, IDs: s.launches.Read, Last: func() messages.LSN { return messages.LSN(s.lastLSN.Load()) }}
}

// took notes what was copied.
func (c *copying) took(g *copies.Given) {
	c.result.Events, c.result.LogFrom, c.result.StateFrom = g.Last, g.Sizes[format.RoleLog], g.Sizes[format.RoleState]
	c.result.SubscriptionsFrom = g.Sizes[format.RoleSubscriptions]
}

// quiet copies the files of a store that nobody writes.
func (c *copying) quiet(ctx context.Context, from *files.Set, state bool) error {
	given, err := c.target.Quiet(ctx, from, state)
	c.took(&given)
	return err
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
		return c.quiet(ctx, s.files, true)
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
	if err := from.OpenSubscriptions(); err != nil {
		return err
	}
	if err := c.quiet(ctx, from, false); err != nil {
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
	if _, err := sourceOf(s).Give(ctx, out); err != nil {
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
		c.result.ID = got.ID.String()
		c.took(&got.Given)
		return err
	})
	return c.result, err
}

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
	from := copies.ReplicaSource{Source: *sourceOf(s), Head: s.replica.head.Load, Kept: s.subscriptions.Kept}
	if err := from.Seed(ctx, out); err != nil {
		return err
	}
	return out.End()
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
