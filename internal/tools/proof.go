package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"
)

// part is a target of the Makefile that is run with smaller numbers, and what it must
// have counted.
type part struct {
	name  string
	args  []string
	kinds []kind
}

// outcome is what came of a part.
type outcome struct {
	part   *part
	path   string // of what it has printed
	output string
	err    error
	took   time.Duration
}

// proofLimit is how long the proof may take, where nothing else is said.
const proofLimit = 10 * time.Minute

// proof runs the parts, some at a time, and prints a line for each kind. It fails unless
// every part ends well, within the time for all, and has counted what it must.
func proof(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("proof", flag.ContinueOnError)
	runMake := flags.String("make", "make", "the program that runs a part")
	out := flags.String("out", filepath.Join("bin", "proof"), "directory for what the parts print")
	match := flags.String("match", ".", "run the parts whose names match this regular expression")
	jobs := flags.Int("jobs", 3, "how many parts run at a time")
	limit := flags.Duration("timeout", proofLimit, "how long all parts may take")
	allowSkips := flags.Bool("allow-skips", false, "do not fail where tests are skipped, since something they need is not there")
	if err := flags.Parse(args); err != nil {
		return err
	}
	selected, err := regexp.Compile(*match)
	if err != nil {
		return fmt.Errorf("proof: %w", err)
	}
	parts := slices.DeleteFunc(proofParts(), func(p part) bool { return !selected.MatchString(p.name) })
	if len(parts) == 0 || *jobs < 1 {
		return fmt.Errorf("proof: got %d parts that match %q and %d jobs, want some", len(parts), *match, *jobs)
	}
	if err := os.MkdirAll(*out, 0o750); err != nil {
		return fmt.Errorf("proof: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, *limit, fmt.Errorf("all parts may take %v, and have not ended", *limit))
	defer cancel()
	v := verdict{allowSkips: *allowSkips, stdout: stdout}
	began := time.Now()
	for o := range runParts(ctx, parts, *jobs, *runMake, *out) {
		v.judge(&o)
	}
	took := time.Since(began).Round(time.Second)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("proof: %w: %d kinds do not hold (%v)", context.Cause(ctx), v.failed, took)
	case v.failed > 0:
		return fmt.Errorf("proof: %d kinds do not hold (%v)", v.failed, took)
	case v.skipped > 0:
		_, _ = fmt.Fprintf(stdout, "proof: %d parts hold, but for %d kinds that were skipped (%v)\n", len(parts), v.skipped, took)
	default:
		_, _ = fmt.Fprintf(stdout, "proof: all %d parts hold (%v)\n", len(parts), took)
	}
	return nil
}

// runParts runs the parts in their order, so many at a time, and yields each one's outcome
// when it has ended.
func runParts(ctx context.Context, parts []part, jobs int, runMake, out string) <-chan outcome {
	next, outcomes := make(chan *part), make(chan outcome)
	go func() {
		for i := range parts {
			next <- &parts[i]
		}
		close(next)
	}()
	var working sync.WaitGroup
	for range jobs {
		working.Go(func() {
			for p := range next {
				outcomes <- p.run(ctx, runMake, filepath.Join(out, p.name+".txt"))
			}
		})
	}
	go func() {
		working.Wait()
		close(outcomes)
	}()
	return outcomes
}

// run runs a part. What it prints goes to a file, so that one can look on.
func (p *part) run(ctx context.Context, runMake, path string) outcome {
	o, began := outcome{part: p, path: path}, time.Now()
	o.output, o.err = p.print(ctx, runMake, path)
	if ctx.Err() != nil {
		o.err = errors.Join(context.Cause(ctx), o.err)
	}
	o.took = time.Since(began)
	return o
}

func (p *part) print(ctx context.Context, runMake, path string) (string, error) {
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, runMake, p.args...)
	cmd.Stdout, cmd.Stderr = file, file
	killTogether(cmd)
	cmd.WaitDelay = 10 * time.Second
	err = errors.Join(cmd.Run(), file.Close())
	output, unread := os.ReadFile(path)
	return string(output), errors.Join(err, unread)
}
