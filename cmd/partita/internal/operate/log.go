package operate

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

func logCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "log " + sourceUse, Short: "Print events",
		Long: `Print the events of a store in commit order, or those of a partition or of a
workspace in the order of its log: one a line, with --json one document a line,
in the words of the HTTP API. With --follow it goes on with what is appended, to
a store that a server has open.
Without state.db it looks at log.db alone, and says so.`,
	}
	from, set := sourceFlags(c), c.Flags()
	var l logPrinter
	var partition, workspace *string
	set.Func("partition", "print the events of partition `P`", given(&partition))
	set.Func("workspace", "print the events of workspace `W`", given(&workspace))
	set.Func("trace", "print only events of trace `ID`, 16 hexadecimal digits", func(text string) (err error) {
		l.trace, err = ids.ParseTraceID(text)
		return err
	})
	set.Uint64Var(&l.next, "from", 1, "begin at `N`: an LSN, or an offset of that log")
	set.Uint64Var(&l.left, "limit", math.MaxUint64, "print at most `N` events")
	set.Lookup("limit").DefValue = "all"
	set.BoolVar(&l.follow, "follow", false, "go on with what is appended, until an interrupt")
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) (err error) {
		l.dir, l.asJSON = from.dir, *asJSON
		if err := l.check(partition, workspace); err != nil {
			return err
		}
		server, err := from.server(ctx)
		if err != nil {
			return err
		}
		if server != nil {
			return server.printLog(ctx, s.Out, l.query(partition, workspace))
		}
		if l.follow {
			return cli.WrongUsage("--follow: no server has %s open: nothing is appended", l.dir)
		}
		l.notes, l.out = s.Err, bufio.NewWriter(s.Out)
		l.write = writeText
		if l.asJSON {
			l.write = writeJSON
		}
		err = l.print(ctx)
		if flushErr := l.out.Flush(); err == nil {
			err = flushErr
		}
		return err
	})
	return c
}

// given takes what a flag is set to. Without the flag it stays nil: an empty value is none.
func given(to **string) func(string) error {
	return func(value string) error {
		*to = &value
		return nil
	}
}

// copyBuffer is how much of a log is read at a time, in bytes.
const copyBuffer = 256 << 10

// printLog prints what a server writes of a log.
func (k *serverKeeper) printLog(ctx context.Context, out io.Writer, query url.Values) (err error) {
	defer func() { err = errors.Join(err, k.close()) }()
	lines, err := k.stream(ctx, "log", query)
	if err != nil {
		return err
	}
	// Without the methods that io.Copy would use instead of the buffer, which spares many small reads and writes.
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{lines}, make([]byte, copyBuffer))
	return errors.Join(err, lines.Close())
}

// logPrinter prints a log.
type logPrinter struct {
	dir    string
	source logSource
	// place is where an event stands in the log that is printed, await waits until there is one at a place.
	place func(e *bolt.LoggedEvent) uint64
	await func(ctx context.Context, s *bolt.Store, at uint64) error
	// asJSON says that it prints documents, follow that it goes on with what is appended.
	asJSON, follow bool
	// partition is the one whose log is wanted, nil if that was not said.
	partition *messages.PartitionID
	// workspace is the same.
	workspace *messages.WSID
	// trace is the one whose events are wanted, zero if all are.
	trace ids.TraceID
	// next is the first LSN or offset to print, left how many events at the most.
	next, left uint64

	out *bufio.Writer
	// flushed is called when what was written is to be sent, direct is what out writes to.
	flushed func() error
	direct  io.Writer
	// cut says that what was printed last may not be all that there is.
	cut bool
	// shared has the lines that all print who follow the whole log, nil if this one prints others.
	shared *sharedLog
	notes  io.Writer
	write  func(io.Writer, *bolt.LoggedEvent, messages.Printer) error
}

// logSource reads a log from an LSN or an offset on.
type logSource func(ctx context.Context, s reader, from uint64) iter.Seq2[bolt.LoggedEvent, error]

func (l *logPrinter) check(partition, workspace *string) error {
	l.next = max(l.next, 1)
	switch {
	case partition != nil && workspace != nil:
		return cli.WrongUsage("log: --partition and --workspace exclude each other")
	case partition != nil:
		p, err := messages.ParsePartitionID(*partition)
		if err != nil {
			return cli.WrongUsage("--partition: %v", err)
		}
		l.ofPartition(p)
	case workspace != nil:
		ws, err := messages.ParseWSID(*workspace)
		if err != nil {
			return cli.WrongUsage("--workspace: %v", err)
		}
		l.workspace = &ws
		l.ofWorkspace(ws)
	default:
		l.ofAll()
	}
	return nil
}

func (l *logPrinter) ofAll() {
	l.source = func(ctx context.Context, s reader, from uint64) iter.Seq2[bolt.LoggedEvent, error] {
		return s.LogWithLSN(ctx, messages.LSN(from))
	}
	l.place = func(e *bolt.LoggedEvent) uint64 { return uint64(e.LSN) }
	l.await = func(ctx context.Context, s *bolt.Store, at uint64) error {
		_, err := s.AwaitAny(ctx, at-1)
		return err
	}
}

func (l *logPrinter) ofPartition(p messages.PartitionID) {
	l.partition = &p
	l.source = func(ctx context.Context, s reader, from uint64) iter.Seq2[bolt.LoggedEvent, error] {
		return s.PLogWithLSN(ctx, p, messages.PLogOffset(from))
	}
	l.place = func(e *bolt.LoggedEvent) uint64 { return uint64(e.PLogOffset) }
	l.await = func(ctx context.Context, s *bolt.Store, at uint64) error {
		return s.AwaitPLog(ctx, p, messages.PLogOffset(at))
	}
}

func (l *logPrinter) ofWorkspace(ws messages.WSID) {
	l.source = func(ctx context.Context, s reader, from uint64) iter.Seq2[bolt.LoggedEvent, error] {
		return s.WLogWithLSN(ctx, ws, messages.WLogOffset(from))
	}
	l.place = func(e *bolt.LoggedEvent) uint64 { return uint64(e.WLogOffset) }
	l.await = func(ctx context.Context, s *bolt.Store, at uint64) error {
		return s.AwaitWLog(ctx, ws, messages.WLogOffset(at))
	}
}

// checkPartition returns a usage error if the application has no such partition.
func (l *logPrinter) checkPartition(d messages.Descriptor) error {
	if l.partition == nil {
		return nil
	}
	return cli.InRange("partition", uint64(*l.partition), 0, uint64(d.Partitions)-1)
}

// print prints what is in the log from next on.
func (l *logPrinter) print(ctx context.Context) (err error) {
	s, closeIt, err := openReader(ctx, l.dir, l.notes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeIt()) }()
	if err := l.checkPartition(s.Descriptor()); err != nil {
		return err
	}
	if err := l.checkWorkspace(ctx, s); err != nil {
		return about(l.dir, err)
	}
	return l.printAll(ctx, s)
}

// checkWorkspace returns an error if the workspace has no event.
func (l *logPrinter) checkWorkspace(ctx context.Context, s reader) error {
	if l.workspace == nil {
		return nil
	}
	return checkWorkspaces(ctx, s, *l.workspace)
}

// printAll prints what is in the log from next on.
func (l *logPrinter) printAll(ctx context.Context, s reader) error {
	if l.left == 0 {
		return nil
	}
	d := s.Descriptor()
	printer := d.Printer()
	for e, err := range l.source(ctx, s, l.next) {
		if err != nil {
			return about(l.dir, err)
		}
		l.next = l.place(&e) + 1
		if l.trace != 0 && e.Trace != l.trace {
			continue
		}
		if err := l.write(l.out, &e, printer); err != nil {
			return err
		}
		if l.left--; l.left == 0 {
			return nil
		}
	}
	return nil
}

// followRest is how long what is appended gathers before it is printed: whoever follows a log that grows fast costs
// less.
const followRest = 100 * time.Millisecond

// printStore prints what is in the log of a store that is open and, if it is to follow it, what comes, until ctx ends.
func (l *logPrinter) printStore(ctx context.Context, s *bolt.Store) error {
	if err := l.checkPartition(s.Descriptor()); err != nil {
		return err
	}
	if !l.follow { // else it waits for its first event
		if err := l.checkWorkspace(ctx, s); err != nil {
			return err
		}
	}
	for {
		before := l.next
		err := l.printMore(ctx, s)
		if err != nil || !l.follow || l.left == 0 {
			return err
		}
		if l.next-before >= maxBlockEvents || l.cut {
			continue // there may be more
		}
		if l.next == before {
			if err := l.await(ctx, s, l.next); err != nil {
				return err
			}
		}
		select {
		case <-time.After(followRest):
		case <-ctx.Done():
		}
	}
}

// printMore prints what there is, or a part of it, and sends it.
func (l *logPrinter) printMore(ctx context.Context, s *bolt.Store) error {
	if l.follow && l.shared != nil && l.left > 0 {
		text, events, known, err := l.shared.next(ctx, messages.LSN(l.next), l.left)
		if known || err != nil {
			l.next += uint64(events)
			l.cut = len(text) >= maxBlockBytes
			l.left -= uint64(events)
			_, writeErr := l.direct.Write(text)
			return errors.Join(err, writeErr, l.flushed())
		}
	}
	err := l.printAll(ctx, s)
	return errors.Join(err, l.out.Flush(), l.flushed())
}
