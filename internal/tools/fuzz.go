package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// target is one fuzz test.
type target struct{ importPath, name string }

// fuzz runs every fuzz target of the module at dir, one after the other.
func fuzz(ctx context.Context, dir string, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	perTarget := flags.Duration("time", 10*time.Second, "how long to run each target")
	match := flags.String("match", ".", "run the targets whose import path and name match this regular expression")
	if err := flags.Parse(args); err != nil {
		return err
	}
	selected, err := regexp.Compile(*match)
	if err != nil {
		return fmt.Errorf("fuzz: %w", err)
	}
	targets, err := fuzzTargets(ctx, dir)
	if err != nil {
		return fmt.Errorf("fuzz: %w", err)
	}
	ran, inputs := 0, 0
	for _, t := range targets {
		if !selected.MatchString(t.importPath + "." + t.name) {
			continue
		}
		tried, err := runFuzz(ctx, dir, t, *perTarget, stdout)
		if err != nil {
			return fmt.Errorf("fuzz: %s.%s: %w", t.importPath, t.name, err)
		}
		ran++
		inputs += tried
	}
	if ran == 0 {
		return fmt.Errorf("fuzz: none of %d fuzz targets matches %q", len(targets), *match)
	}
	_, _ = fmt.Fprintf(stdout, "fuzz: targets=%d inputs=%d, %v each\n", ran, inputs, *perTarget)
	return nil
}

// fuzzTargets finds the functions FuzzXxx(*testing.F) of the module at dir.
func fuzzTargets(ctx context.Context, dir string) ([]target, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", withStderr(err))
	}
	var targets []target
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return targets, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for _, name := range append(p.TestGoFiles, p.XTestGoFiles...) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
					targets = append(targets, target{p.ImportPath, f.Name.Name})
				}
			}
		}
	}
}

// minimizing is how often a target may be run to make an input smaller that fails or gets to new code.
// Go's own bound is a minute for each, in which a worker tries nothing new: a short run can be over
// before it has made one input smaller. A bound in time is worse: Go ends the worker that meets it, and
// what it has made smaller is lost.
const minimizing = "100x"

// runFuzz runs one target and returns how many inputs it has tried. Up to Go 1.26 a run may fail at the very end of its
// time with nothing but "context deadline exceeded" (golang/go#75804); such a run
// has found nothing and is repeated, once.
func runFuzz(ctx context.Context, dir string, t target, duration time.Duration, stdout io.Writer) (inputs int, err error) {
	for attempt := 1; ; attempt++ {
		_, _ = fmt.Fprintf(stdout, "fuzz: %s %s\n", t.importPath, t.name)
		var output bytes.Buffer
		cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", duration.String(),
			"-fuzzminimizetime", minimizing, t.importPath)
		cmd.Dir = dir
		cmd.Stdout = io.MultiWriter(stdout, &output)
		cmd.Stderr = cmd.Stdout
		err = cmd.Run()
		if err == nil {
			inputs, err = inputsTried(output.String())
			if attempt > 1 || !errors.Is(err, errNoInput) {
				return inputs, err
			}
			duration *= 10
			_, _ = fmt.Fprintf(stdout, "fuzz: what earlier runs have kept took all the time: once more, for %v\n", duration)
			continue
		}
		if attempt > 1 || !endedTooLate(output.String()) {
			return 0, err
		}
		_, _ = fmt.Fprintln(stdout, "fuzz: the deadline was met too late (golang/go#75804): once more")
	}
}

var (
	lateEnd = regexp.MustCompile(`(?m)^--- FAIL: Fuzz\w+ \([0-9.]+s\)\n +context deadline exceeded\n(FAIL|exit status)`)
	failure = regexp.MustCompile(`Failing input written|panic:|fatal error:`)
)

var executions = regexp.MustCompile(`(?m)^fuzz: elapsed: .*, execs: (\d+) `)

// errNoInput is the error of a run that was over before it tried anything new: the inputs that earlier
// runs have kept come first.
var errNoInput = errors.New("no input was tried")

// inputsTried returns what the last line of a run says that has a count.
func inputsTried(output string) (inputs int, err error) {
	lines := executions.FindAllStringSubmatch(output, -1)
	if len(lines) > 0 {
		inputs, err = strconv.Atoi(lines[len(lines)-1][1])
	}
	if err == nil && inputs == 0 {
		err = errNoInput
	}
	return inputs, err
}

// endedTooLate reports whether the output of a failed run tells of the deadline
// only.
func endedTooLate(output string) bool {
	return lateEnd.MatchString(output) && !failure.MatchString(output)
}

// withStderr adds what a failed command printed to its error.
func withStderr(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}
