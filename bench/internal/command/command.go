// Package command is the program's command line.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/bench/internal/plot"
	"github.com/partita-go/partita/bench/internal/report"
	"github.com/partita-go/partita/bench/internal/rows"
	"github.com/partita-go/partita/bench/internal/trio"
)

const usageText = `Appends events as fast as a store takes them, one row after the other, each in a
process and a directory of its own, and compares what is stored with what was
acknowledged. Rows that are read have readers besides: what they skip, see twice or out
of order is counted, and how late they have it. The exit status is 1 if a row is wrong or
missing, or a bar is missed.

  bench [run] [flags]      measure the rows that only append
  bench readers [flags]    measure the rows that are read while they are appended to
  bench midnight [flags]   measure the rows whose numbers begin anew each day
  bench cluster [flags]    measure three nodes: partita, NATS JetStream and etcd
  bench list               name the rows
  bench table <LINES       the table of lines that -json wrote, and a verdict on each bar
  bench plot <LINES >SVG   a picture of them
  bench soak-plot <LINES >SVG   a picture of the samples that a soak wrote

`

// Run runs the program and returns its exit status.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := dispatch(ctx, args, stdin, stdout, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

// rowsOf are the rows that commands measure.
var rowsOf = map[string]func() [][]measure.Spec{
	"run": rows.Groups, "readers": rows.ReadingGroups, "midnight": rows.MidnightGroups,
}

func dispatch(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	name := "run"
	if len(args) > 0 && len(args[0]) > 0 && args[0][0] != '-' {
		name, args = args[0], args[1:]
	}
	if groups, ok := rowsOf[name]; ok {
		return run(ctx, args, groups(), stdout, stderr)
	}
	switch name {
	case "list":
		return list(stdout)
	case "table":
		return table(args, stdin, stdout, stderr)
	case "plot":
		return readInto(stdin, stdout, plot.Write)
	case "soak-plot":
		return plot.WriteSoak(stdout, stdin)
	case "help":
		return run(ctx, []string{"-help"}, rows.Groups(), stdout, stderr)
	case "cluster":
		return clusterCommand(ctx, args, stdout, stderr)
	case trio.Command:
		return node(ctx, args, stdin, stdout)
	case rowCommand:
		return row(ctx, args, stdout, stderr)
	}
	if serve, ok := servers[name]; ok {
		if len(args) != 1 {
			return fmt.Errorf("%s: got %d arguments, want a directory", name, len(args))
		}
		return serve(ctx, args[0], stdout)
	}
	return fmt.Errorf("got command %q, want run, readers, midnight, cluster, list, table, plot, soak-plot or help", name)
}

func list(stdout io.Writer) error {
	for _, spec := range rows.All() {
		if _, err := fmt.Fprintln(stdout, spec.Name); err != nil {
			return err
		}
	}
	return nil
}

func table(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	allowMissing := false
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	flags.SetOutput(stderr)
	allowMissingFlag(flags, &allowMissing)
	if err := flags.Parse(args); err != nil {
		return err
	}
	return readInto(stdin, stdout, func(w io.Writer, results []report.Result) error {
		return writeTable(w, results, allowMissing)
	})
}

// readInto writes something about the results that are read.
func readInto(stdin io.Reader, stdout io.Writer, write func(io.Writer, []report.Result) error) error {
	results, err := report.ReadLines(stdin)
	if err != nil {
		return err
	}
	if len(results) == 0 {
		return errors.New("got no lines, want those that -json writes")
	}
	return write(stdout, results)
}
