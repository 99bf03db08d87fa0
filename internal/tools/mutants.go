package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// mutants plants faults in the module at dir, one at a time, and fails unless the
// tests named beside each one fail. The files stay as they are: the go command is
// told to read others in their place.
func mutants(ctx context.Context, dir string, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	match := flags.String("match", ".", "plant the faults whose names match this regular expression")
	limit := flags.Duration("timeout", 2*time.Minute, "how long the tests of one fault may take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	selected, err := regexp.Compile(*match)
	if err != nil {
		return fmt.Errorf("mutants: %w", err)
	}
	all, err := readPlants(dir, flags.Args())
	if err != nil {
		return fmt.Errorf("mutants: %w", err)
	}
	all = slices.DeleteFunc(all, func(p plant) bool { return !selected.MatchString(p.name) })
	if len(all) == 0 {
		return fmt.Errorf("mutants: no fault matches %q", *match)
	}
	g := &garden{dir: dir, limit: *limit, stdout: stdout}
	if err := g.checkSound(ctx, all); err != nil {
		return fmt.Errorf("mutants: %w", err)
	}
	survived := 0
	for i := range all {
		caught, err := g.grow(ctx, &all[i])
		if err != nil {
			return fmt.Errorf("mutants: %s: %w", all[i].name, err)
		}
		if !caught {
			survived++
		}
	}
	_, _ = fmt.Fprintf(stdout, "mutants: planted=%d caught=%d survived=%d\n", len(all), len(all)-survived, survived)
	if survived > 0 {
		return fmt.Errorf("mutants: %d faults were not caught", survived)
	}
	return nil
}

// garden is where faults are planted.
type garden struct {
	dir    string
	limit  time.Duration
	stdout io.Writer
}

// checkSound makes sure that every test that is to catch a fault is there and
// passes without one.
func (g *garden) checkSound(ctx context.Context, all []plant) error {
	var order []string
	tests := make(map[string][]string)
	for i := range all {
		for _, t := range all[i].tests {
			if tests[t.importPath] == nil {
				order = append(order, t.importPath)
			}
			if !slices.Contains(tests[t.importPath], t.name) {
				tests[t.importPath] = append(tests[t.importPath], t.name)
			}
		}
	}
	for _, path := range order {
		output, by, err := g.test(ctx, path, strings.Join(tests[path], "|"), "-v")
		if err != nil {
			return err
		}
		if by != "" {
			return fmt.Errorf("the tests of %s fail without a fault:\n%s", path, output)
		}
		for _, name := range tests[path] {
			if !strings.Contains(output, "\n--- PASS: "+name+" ") {
				return fmt.Errorf("%s: no test %s has run", path, name)
			}
		}
	}
	return nil
}

// grow plants a fault and reports whether each of its tests catches it.
func (g *garden) grow(ctx context.Context, p *plant) (bool, error) {
	tmp, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	overlay, err := g.overlay(tmp, p)
	if err != nil {
		return false, err
	}
	var catchers []string
	for _, t := range p.tests {
		output, by, err := g.test(ctx, t.importPath, t.name, "-overlay", overlay, "-count=1", "-failfast")
		if err != nil {
			return false, err
		}
		if by == "" {
			_, _ = fmt.Fprintf(g.stdout, "mutants: %s SURVIVED %s %s\n%s", p.name, t.importPath, t.name, output)
			continue
		}
		catchers = append(catchers, by)
	}
	if len(catchers) < len(p.tests) {
		return false, nil
	}
	_, _ = fmt.Fprintf(g.stdout, "mutants: %s caught by %s\n", p.name, strings.Join(catchers, ", "))
	return true, nil
}

// overlay writes the files of a fault.
func (g *garden) overlay(tmp string, p *plant) (string, error) {
	root, err := filepath.Abs(g.dir)
	if err != nil {
		return "", err
	}
	texts := make(map[string]string)
	for _, c := range p.changed {
		texts[filepath.Join(root, filepath.FromSlash(c.path))] = c.text
	}
	return writeOverlay(tmp, texts)
}

// test runs tests and says what failed or hung until its time was over, nothing if they passed. An
// error is that they could not be built or found.
func (g *garden) test(ctx context.Context, importPath, names string, more ...string) (output, by string, err error) {
	args := []string{"test", "-short", "-vet=off", "-timeout", g.limit.String(), "-run", "^(" + names + ")$"}
	cmd := exec.CommandContext(ctx, "go", append(append(args, more...), importPath)...)
	cmd.Dir = g.dir
	leaveNoTrace(cmd)
	out, err := cmd.CombinedOutput()
	output = string(out)
	switch {
	case ctx.Err() != nil:
		return output, "", context.Cause(ctx)
	case notRun.MatchString(output):
		return output, "", fmt.Errorf("%s: tests do not build or are not there:\n%s", importPath, output)
	case err != nil:
		by, err = catcher(output, err)
	}
	return output, by, err
}

var notRun = regexp.MustCompile(`\[(build|setup) failed\]|\[no tests to run\]|\[no test files\]`)
