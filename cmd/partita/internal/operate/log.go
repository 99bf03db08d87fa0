package operate

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"math"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

func logCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "log --db DIR", Short: "Print events",
		Long: `Print the events of a store in commit order, or those of a partition or of a
workspace in the order of its log: one a line, with --json one document a line,
in the words of the HTTP API.
Without state.db it looks at log.db alone, and says so.`,
	}
	dir, set := cli.DB(c), c.Flags()
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
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) error {
		l.dir = *dir
		if err := l.check(partition, workspace); err != nil {
			return err
		}
		l.notes, l.out = s.Err, bufio.NewWriter(s.Out)
		l.write = writeText
		if *asJSON {
			l.write = writeJSON
		}
		err := l.print(ctx)
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

// logPrinter prints a log.
type logPrinter struct {
	dir    string
	source logSource
	// partition is the one whose log is wanted, nil if that was not said.
	partition *messages.PartitionID
	// trace is the one whose events are wanted, zero if all are.
	trace ids.TraceID
	// next is the first LSN or offset to print, left how many events at the most.
	next, left uint64

	out   *bufio.Writer
	notes io.Writer
	write func(io.Writer, *bolt.LoggedEvent, messages.Printer) error
}

// logSource reads a log from an LSN or an offset on.
type logSource func(ctx context.Context, s reader, from uint64) iter.Seq2[bolt.LoggedEvent, error]

func (l *logPrinter) check(partition, workspace *string) error {
	l.source = func(ctx context.Context, s reader, from uint64) iter.Seq2[bolt.LoggedEvent, error] {
		return s.LogWithLSN(ctx, messages.LSN(from))
	}
	switch {
	case partition != nil && workspace != nil:
		return cli.WrongUsage("log: --partition and --workspace exclude each other")
	case partition != nil:
		p, err := messages.ParsePartitionID(*partition)
		if err != nil {
			return cli.WrongUsage("--partition: %v", err)
		}
		l.partition = &p
		l.source = func(ctx context.Context, s reader, from uint64) iter.Seq2[bolt.LoggedEvent, error] {
			return s.PLogWithLSN(ctx, p, messages.PLogOffset(from))
		}
	case workspace != nil:
		ws, err := messages.ParseWSID(*workspace)
		if err != nil {
			return cli.WrongUsage("--workspace: %v", err)
		}
		l.source = func(ctx context.Context, s reader, from uint64) iter.Seq2[bolt.LoggedEvent, error] {
			return s.WLogWithLSN(ctx, ws, messages.WLogOffset(from))
		}
	}
	l.next = max(l.next, 1)
	return nil
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
	if l.left == 0 {
		return nil
	}
	d := s.Descriptor()
	printer := d.Printer()
	for e, err := range l.source(ctx, s, l.next) {
		if err != nil {
			return about(l.dir, err)
		}
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
