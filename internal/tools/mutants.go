package main

import (
	"context"
	"encoding/json"
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
		output, failed, err := g.test(ctx, "", path, strings.Join(tests[path], "|"), "-v")
		if err != nil {
			return err
		}
		if failed {
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
	overlay, remove, err := g.overlay(p)
	if err != nil {
		return false, err
	}
	defer remove()
	caught := true
	for _, t := range p.tests {
		output, failed, err := g.test(ctx, overlay, t.importPath, t.name)
		if err != nil {
			return false, err
		}
		if !failed {
			caught = false
			_, _ = fmt.Fprintf(g.stdout, "mutants: %s SURVIVED %s %s\n%s", p.name, t.importPath, t.name, output)
		}
	}
	if caught {
		_, _ = fmt.Fprintf(g.stdout, "mutants: %s caught\n", p.name)
	}
	return caught, nil
}

// overlay writes the files of a fault, and what tells the go command about them.
func (g *garden) overlay(p *plant) (path string, remove func(), err error) {
	tmp, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(tmp) }
	defer func() {
		if err != nil {
			remove()
		}
	}()
	root, err := filepath.Abs(g.dir)
	if err != nil {
		return "", nil, err
	}
	var list struct{ Replace map[string]string }
	list.Replace = make(map[string]string)
	for i, c := range p.changed {
		list.Replace[filepath.Join(root, filepath.FromSlash(c.path))] = filepath.Join(tmp, fmt.Sprint(i, ".go"))
		if err := os.WriteFile(filepath.Join(tmp, fmt.Sprint(i, ".go")), []byte(c.text), 0o600); err != nil {
			return "", nil, err
		}
	}
	data, err := json.Marshal(list)
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(tmp, "overlay.json")
	return path, remove, os.WriteFile(path, data, 0o600)
}

// test runs tests and reports whether they failed, or hung until their time was over.
// An error is that they could not be built or found.
func (g *garden) test(ctx context.Context, overlay, importPath, names string, more ...string) (output string, failed bool, err error) {
	args := []string{"test", "-short", "-vet=off", "-timeout", g.limit.String(), "-run", "^(" + names + ")$"}
	if overlay != "" {
		args = append(args, "-overlay", overlay, "-count=1", "-failfast")
	}
	cmd := exec.CommandContext(ctx, "go", append(append(args, more...), importPath)...)
	cmd.Dir = g.dir
	out, err := cmd.CombinedOutput()
	output = string(out)
	switch {
	case ctx.Err() != nil:
		return output, false, context.Cause(ctx)
	case notRun.MatchString(output):
		return output, false, fmt.Errorf("%s: tests do not build or are not there:\n%s", importPath, output)
	}
	return output, err != nil, nil
}

var notRun = regexp.MustCompile(`\[(build|setup) failed\]|\[no tests to run\]|\[no test files\]`)
