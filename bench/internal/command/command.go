// Package command is the program's command line.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/partita-go/partita/bench/internal/natsserver"
	"github.com/partita-go/partita/bench/internal/report"
	"github.com/partita-go/partita/bench/internal/rows"
)

const usageText = `Appends events as fast as a store takes them, one row after the other, each in a
process and a directory of its own, and compares what is stored with what was
acknowledged. The exit status is 1 if a row is wrong or missing.

  bench [run] [flags]      measure the rows
  bench list               name the rows
  bench table <LINES       the table of lines that --json wrote

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

func dispatch(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	name := "run"
	if len(args) > 0 && len(args[0]) > 0 && args[0][0] != '-' {
		name, args = args[0], args[1:]
	}
	switch name {
	case "run":
		return run(ctx, args, stdout, stderr)
	case "list":
		return list(stdout)
	case "table":
		return table(stdin, stdout)
	case "help":
		return run(ctx, []string{"-help"}, stdout, stderr)
	case rowCommand:
		return row(ctx, args, stdout, stderr)
	case natsserver.Command:
		if len(args) != 1 {
			return fmt.Errorf("%s: got %d arguments, want a directory", name, len(args))
		}
		return natsserver.Run(ctx, args[0], stdout)
	}
	return fmt.Errorf("got command %q, want run, list, table or help", name)
}

func list(stdout io.Writer) error {
	for _, spec := range rows.All() {
		if _, err := fmt.Fprintln(stdout, spec.Name); err != nil {
			return err
		}
	}
	return nil
}

func table(stdin io.Reader, stdout io.Writer) error {
	results, err := report.ReadLines(stdin)
	if err != nil {
		return err
	}
	if len(results) == 0 {
		return errors.New("table: got no lines")
	}
	return report.WriteTable(stdout, results)
}
