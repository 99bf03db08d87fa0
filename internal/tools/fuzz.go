package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// target is one test of a package.
type target struct{ importPath, name string }

// fuzzTarget is one fuzz test of the package in dir.
type fuzzTarget struct {
	target
	dir, module string
}

// fuzz runs every fuzz target of the module at dir, one after the other.
func fuzz(ctx context.Context, dir string, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	perTarget := flags.Duration("time", 10*time.Second, "how long to run each target")
	match := flags.String("match", ".", "run the targets whose import path and name match this regular expression")
	programs := flags.String("programs", "", "directory of the tests' programs: those that are there are not built again; empty: a temporary one")
	build := flags.Bool("build", false, "only build the programs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	selected, err := regexp.Compile(*match)
	if err != nil {
		return fmt.Errorf("fuzz: %w", err)
	}
	all, err := fuzzTargets(ctx, dir)
	if err != nil {
		return fmt.Errorf("fuzz: %w", err)
	}
	targets := slices.DeleteFunc(slices.Clone(all), func(t fuzzTarget) bool { return !selected.MatchString(t.importPath + "." + t.name) })
	if len(targets) == 0 {
		return fmt.Errorf("fuzz: none of %d fuzz targets matches %q", len(all), *match)
	}
	f, err := newFuzzer(ctx, *programs, stdout)
	if err != nil {
		return fmt.Errorf("fuzz: %w", err)
	}
	if *programs == "" {
		defer func() { _ = os.RemoveAll(f.programs) }()
	}
	inputs := 0
	for _, t := range targets {
		if *build {
			if _, err := f.program(ctx, t); err != nil {
				return fmt.Errorf("fuzz: %s: %w", t.importPath, err)
			}
			continue
		}
		tried, err := f.run(ctx, t, *perTarget)
		if err != nil {
			return fmt.Errorf("fuzz: %s.%s: %w", t.importPath, t.name, err)
		}
		inputs += tried
	}
	if !*build {
		_, _ = fmt.Fprintf(stdout, "fuzz: targets=%d inputs=%d, %v each\n", len(targets), inputs, *perTarget)
	}
	return nil
}

// fuzzTargets finds the functions FuzzXxx(*testing.F) of the module at dir.
func fuzzTargets(ctx context.Context, dir string) ([]fuzzTarget, error) {
	packages, err := goList(ctx, dir, "./...")
	if err != nil {
		return nil, err
	}
	var targets []fuzzTarget
	for _, p := range packages {
		for _, name := range append(p.TestGoFiles, p.XTestGoFiles...) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
					targets = append(targets, fuzzTarget{target{p.ImportPath, f.Name.Name}, p.Dir, p.Module.Path})
				}
			}
		}
	}
	return targets, nil
}

// minimizing is how often a target may be run to make an input smaller that fails or gets to new code.
// Go's own bound is a minute for each, in which a worker tries nothing new: a short run can be over
// before it has made one input smaller. A bound in time is worse: Go ends the worker that meets it, and
// what it has made smaller is lost.
const minimizing = "100x"

// fuzzer runs targets as go test -fuzz does, but builds the tests of a package once for all of its
// targets: building takes as long as fuzzing.
type fuzzer struct {
	programs string // where they are
	kept     string // what go test -fuzz keeps the inputs in that it has found
	stdout   io.Writer
}

func newFuzzer(ctx context.Context, programs string, stdout io.Writer) (*fuzzer, error) {
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", withStderr(err))
	}
	if programs == "" {
		programs, err = os.MkdirTemp("", "fuzz-")
	} else if programs, err = filepath.Abs(programs); err == nil {
		err = os.MkdirAll(programs, 0o700)
	}
	kept := filepath.Join(strings.TrimSpace(string(cache)), "fuzz")
	return &fuzzer{programs: programs, kept: kept, stdout: stdout}, err
}

// program returns the tests of a target's package, which tell where an input gets to: in packages of this module. With
// -fuzz, go test would instrument the standard library and all other modules, too. That takes ten times as long to build,
// a run tries a tenth of the inputs, and most of what it takes for new is new to others only.
func (f *fuzzer) program(ctx context.Context, t fuzzTarget) (string, error) {
	path := filepath.Join(f.programs, strings.ReplaceAll(t.importPath, "/", "_")+".test")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags="+t.module+"/...=-d=libfuzzer", "-o", path, ".")
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.dir, f.stdout, f.stdout
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go test -c: %w", err)
	}
	return path, nil
}

// run runs one target and returns how many inputs it has tried. Up to Go 1.26 a run may fail at the very end of its
// time with nothing but "context deadline exceeded" (golang/go#75804); such a run
// has found nothing and is repeated, once.
func (f *fuzzer) run(ctx context.Context, t fuzzTarget, duration time.Duration) (inputs int, err error) {
	program, err := f.program(ctx, t)
	if err != nil {
		return 0, err
	}
	for attempt := 1; ; attempt++ {
		_, _ = fmt.Fprintf(f.stdout, "fuzz: %s %s\n", t.importPath, t.name)
		var output bytes.Buffer
		cmd := exec.CommandContext(ctx, program, "-test.paniconexit0", "-test.run", "^$", "-test.fuzz", "^"+t.name+"$",
			"-test.fuzztime", duration.String(), "-test.fuzzminimizetime", minimizing,
			"-test.fuzzcachedir", filepath.Join(f.kept, filepath.FromSlash(t.importPath)))
		cmd.Dir = t.dir
		cmd.Stdout = io.MultiWriter(f.stdout, &output)
		cmd.Stderr = cmd.Stdout
		err = cmd.Run()
		if strings.Contains(output.String(), "without coverage guidance") {
			return 0, errors.New("the program does not tell where an input gets to")
		}
		if err == nil {
			inputs, err = inputsTried(output.String())
			if attempt > 1 || !errors.Is(err, errNoInput) {
				return inputs, err
			}
			duration *= 10
			_, _ = fmt.Fprintf(f.stdout, "fuzz: what earlier runs have kept took all the time: once more, for %v\n", duration)
			continue
		}
		if attempt > 1 || !endedTooLate(output.String()) {
			return 0, err
		}
		_, _ = fmt.Fprintln(f.stdout, "fuzz: the deadline was met too late (golang/go#75804): once more")
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
