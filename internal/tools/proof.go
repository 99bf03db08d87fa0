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
	"strconv"
	"strings"
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

// kind is one thing that is counted.
type kind struct {
	name string
	// line selects the lines of the part's output that the counts are on.
	line   *regexp.Regexp
	counts []count
}

// count is a number on lines; it is the sum if there are several.
type count struct {
	label string
	// number has the number as its first group, perhaps several times. Nil: the
	// lines are counted.
	number *regexp.Regexp
	// least and most bound it.
	least, most int
}

// unbounded is the bound of what may be large.
const unbounded = int(^uint(0) >> 1)

// read returns the counts as words. It is an error if one is not there, or out of its
// bounds.
func (k *kind) read(output string) (string, error) {
	var lines []string
	for line := range strings.SplitSeq(output, "\n") {
		if k.line.MatchString(line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return "", fmt.Errorf("no count: got no line like %q", k.line)
	}
	var words []string
	var errs []error
	for i := range k.counts {
		c := &k.counts[i]
		n, err := c.of(lines)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		words = append(words, fmt.Sprintf("%s %s", grouped(n), c.label))
		if n < c.least || n > c.most {
			errs = append(errs, fmt.Errorf("got %d %s, want %s", n, c.label, c.bounds()))
		}
	}
	return strings.Join(words, ", "), errors.Join(errs...)
}

func (c *count) of(lines []string) (sum int, err error) {
	if c.number == nil {
		return len(lines), nil
	}
	for _, line := range lines {
		found := c.number.FindAllStringSubmatch(line, -1)
		if found == nil {
			return 0, fmt.Errorf("no count of %s: got no %q in %q", c.label, c.number, line)
		}
		for _, groups := range found {
			n, err := strconv.Atoi(groups[1])
			if err != nil {
				return 0, fmt.Errorf("%s: %w", c.label, err)
			}
			sum += n
		}
	}
	return sum, nil
}

func (c *count) bounds() string {
	switch {
	case c.most == unbounded:
		return fmt.Sprintf("at least %d", c.least)
	case c.least == c.most:
		return fmt.Sprint(c.least)
	}
	return fmt.Sprintf("%d to %d", c.least, c.most)
}

// grouped writes a number with commas.
func grouped(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// outcome is what came of a part.
type outcome struct {
	part   *part
	path   string // of what it has printed
	output string
	err    error
	took   time.Duration
}

// proof runs the parts, some at a time, and prints a line for each kind. It fails unless
// every part ends well and has counted what it must.
func proof(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("proof", flag.ContinueOnError)
	runMake := flags.String("make", "make", "the program that runs a part")
	out := flags.String("out", filepath.Join("bin", "proof"), "directory for what the parts print")
	match := flags.String("match", ".", "run the parts whose names match this regular expression")
	jobs := flags.Int("jobs", 2, "how many parts run at a time")
	limit := flags.Duration("timeout", 20*time.Minute, "how long all parts may take")
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
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	began := time.Now()
	failed := 0
	for o := range runParts(ctx, parts, *jobs, *runMake, *out) {
		failed += o.report(stdout)
	}
	took := time.Since(began).Round(time.Second)
	if failed > 0 {
		return fmt.Errorf("proof: %d kinds do not hold (%v)", failed, took)
	}
	_, _ = fmt.Fprintf(stdout, "proof: all %d parts hold (%v)\n", len(parts), took)
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

// report prints a part's lines and returns how many kinds do not hold.
func (o *outcome) report(w io.Writer) (failed int) {
	took := fmt.Sprintf("(%v, %s)", o.took.Round(time.Second), o.path)
	for i := range o.part.kinds {
		k := &o.part.kinds[i]
		words, err := k.read(o.output)
		if err = errors.Join(err, o.err); err == nil {
			_, _ = fmt.Fprintf(w, "ok      %-16s %s  %s\n", k.name, words, took)
			continue
		}
		failed++
		_, _ = fmt.Fprintf(w, "FAILED  %-16s %s  %s\n", k.name, words, took)
		_, _ = fmt.Fprintf(w, "        %s\n", strings.ReplaceAll(err.Error(), "\n", "\n        "))
	}
	if skipped := strings.Count(o.output, "--- SKIP"); skipped > 0 {
		_, _ = fmt.Fprintf(w, "        %d tests of %s were skipped, since something they need is not there: see %s\n", skipped, o.part.name, o.path)
	}
	if failed > 0 {
		_, _ = fmt.Fprintf(w, "%s", tail(o.output, 30))
	}
	return failed
}

// tail returns the last lines of a text, indented and not too long.
func tail(text string, n int) string {
	const longest = 160
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	lines = lines[max(0, len(lines)-n):]
	var b strings.Builder
	for _, line := range lines {
		if letters := []rune(line); len(letters) > longest {
			line = string(letters[:longest]) + " …"
		}
		b.WriteString("        | " + line + "\n")
	}
	return b.String()
}
