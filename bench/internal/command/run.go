package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/bench/internal/process"
	"github.com/partita-go/partita/bench/internal/report"
	"github.com/partita-go/partita/bench/internal/rows"
)

// run measures the rows of some groups and prints them.
func run(ctx context.Context, args []string, groups [][]measure.Spec, stdout, stderr io.Writer) error {
	o, err := parse(args, groups, stderr)
	if err != nil {
		return err
	}
	turns, err := o.turns()
	if err != nil {
		return err
	}
	parent, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	var results []report.Result
	for i, t := range turns {
		fmt.Fprintf(stderr, "%d of %d: %s: %v and %v\n", i+1, len(turns), t.spec.Name, o.plan.Warmup, o.plan.Window)
		r, err := inProcess(ctx, o.planOf(t), t.spec, parent, stderr)
		if err != nil {
			return fmt.Errorf("%s: %w", t.spec.Name, err)
		}
		r.Repeat = t.repeat
		if results = append(results, r); o.json {
			err = report.WriteLine(stdout, &r)
		}
		if err != nil {
			return err
		}
	}
	if o.json {
		return report.Err(results, o.allowMissing)
	}
	return errors.Join(report.Err(results, o.allowMissing), writeTable(stdout, results, o.allowMissing))
}

// writeTable writes the table and the bars.
func writeTable(stdout io.Writer, results []report.Result, allowMissing bool) error {
	if err := report.WriteTable(stdout, results); err != nil {
		return err
	}
	return report.WriteBars(stdout, results, allowMissing)
}

// rowCommand makes this program measure one row; its name and directory follow
// the flags.
const rowCommand = "row"

// profileFlag names the file for a row's CPU profile.
const profileFlag = "cpuprofile"

// endLimit is how long a row's process may take to end after it is told to.
const endLimit = 2 * time.Minute

// inProcess measures a row in a process of its own, so that nothing of another row
// is in its memory, and in a directory of its own, which is removed.
func inProcess(ctx context.Context, plan measure.Plan, spec measure.Spec, parent string, stderr io.Writer) (r report.Result, err error) {
	dir, err := os.MkdirTemp(parent, "bench-row-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // a server may run as another account
		return r, err
	}
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, plan.Limit())
	defer cancel()
	args := append([]string{rowCommand, "-" + profileFlag, plan.Profile}, planArgs(plan)...)
	command := exec.CommandContext(ctx, self, append(args, spec.Name, dir)...) //nolint:gosec // it is this program
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = endLimit
	command.Stderr = stderr
	process.EndWithParent(command)
	out, err := command.Output()
	if ctx.Err() != nil {
		return r, errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		return r, err
	}
	results, err := report.ReadLines(bytes.NewReader(out))
	if err == nil && len(results) != 1 {
		err = fmt.Errorf("got %d results, want 1", len(results))
	}
	if err != nil {
		return r, err
	}
	return results[0], nil
}

// row measures one row in this process and prints its line.
func row(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var plan measure.Plan
	flags := flag.NewFlagSet(rowCommand, flag.ContinueOnError)
	flags.SetOutput(stderr)
	planFlags(flags, &plan)
	flags.StringVar(&plan.Profile, profileFlag, "", "file for a CPU profile")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		return fmt.Errorf("%s: got %d arguments, want a row and a directory", rowCommand, flags.NArg())
	}
	if err := checkPlan(plan); err != nil {
		return err
	}
	setProcessors()
	// An account that a server runs as owns what is below, not the directory itself.
	dir := filepath.Join(flags.Arg(1), "row")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, spec := range rows.All() {
		if spec.Name == flags.Arg(0) {
			r := plan.Measure(ctx, spec, dir)
			return report.WriteLine(stdout, &r)
		}
	}
	return fmt.Errorf("%s: got %q, want the name of a row", rowCommand, flags.Arg(0))
}

// syncing is how many goroutines of a store may sit in a sync at the same time.
const syncing = 2

// setProcessors lets as many goroutines run as there are processors while others wait
// for the disk: Go counts a goroutine in a system call as running until it has
// waited for a while. All rows have it the same, unless GOMAXPROCS is set.
func setProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.NumCPU() + syncing)
	}
}
