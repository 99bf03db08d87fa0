package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// test is a test of a suite: how long it took, and the blocks of code that it got to.
type test struct {
	in     suite
	name   string
	took   time.Duration
	blocks []block
}

// id tells tests of different suites apart.
func (t *test) id() string { return t.in.dir + " " + t.name }

// block is a piece of a file without branches, as coverage profiles have it: the file's name begins with the
// path of its module.
type block struct {
	file       string
	start, end position
}

type position struct{ line, column int }

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.line, q.line), cmp.Compare(p.column, q.column))
}

// measure runs each test in a process of its own and learns what it gets to.
func (p *program) measure(ctx context.Context) error {
	dirs := p.sourceDirs()
	for i := range dirs {
		dirs[i] = "./" + dirs[i]
	}
	for _, s := range p.suites {
		output, err := p.goTest(ctx, "-c", "-vet=off", "-coverpkg", strings.Join(dirs, ","), "-o", s.covered(), "./"+s.dir)
		if err != nil {
			return fmt.Errorf("%w:\n%s", err, output)
		}
		list, err := p.runCovered(ctx, s, "-test.list", "^(Test|Fuzz|Example)")
		if err != nil {
			return err
		}
		for name := range strings.Lines(list) {
			p.tests = append(p.tests, test{in: s, name: strings.TrimSpace(name)})
		}
	}
	if err := p.measureAll(ctx); err != nil {
		return err
	}
	slices.SortFunc(p.tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	return nil
}

// covered is the program that notes what the tests get to.
func (s suite) covered() string { return s.binary + ".covered" }

// measureAll measures some tests at a time: most of the time they wait for the disk.
func (p *program) measureAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	tokens := make(chan struct{}, p.workers)
	for i := range p.tests {
		tokens <- struct{}{}
		wg.Go(func() {
			defer func() { <-tokens }()
			profile := filepath.Join(p.tmp, fmt.Sprintf("profile-%d", i))
			if err := p.measureOne(ctx, &p.tests[i], profile); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (p *program) measureOne(ctx context.Context, t *test, profile string) (err error) {
	started := time.Now()
	if _, err := p.runCovered(ctx, t.in, "-test.run", "^"+t.name+"$", "-test.coverprofile", profile); err != nil {
		return fmt.Errorf("%s fails without a change: %w", t.name, err)
	}
	t.took = time.Since(started)
	t.blocks, err = readProfile(profile)
	return err
}

// runCovered runs a suite and notes what its tests get to.
func (p *program) runCovered(ctx context.Context, s suite, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.covered(), append(args, "-test.short", "-test.timeout", p.limit.String())...)
	cmd.Dir = filepath.Join(p.root, s.dir)
	leaveNoTrace(cmd)
	output, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w:\n%s", err, output)
	}
	return string(output), err
}

// A line is example.org/module/package/file.go:12.3,14.5 2 1: from, to, statements, and
// whether they were run.
var profileLine = regexp.MustCompile(`(?m)^(.+):(\d+)\.(\d+),(\d+)\.(\d+) \d+ 1$`)

// readProfile returns the blocks that were run.
func readProfile(profile string) ([]block, error) {
	text, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	var blocks []block
	for _, found := range profileLine.FindAllStringSubmatch(string(text), -1) {
		var n [4]int
		for i, digits := range found[2:] {
			if n[i], err = strconv.Atoi(digits); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", profile, found[0], err)
			}
		}
		blocks = append(blocks, block{found[1], position{n[0], n[1]}, position{n[2], n[3]}})
	}
	return blocks, nil
}

// reaching returns the tests that get to a change. What no test gets to, and what is in no
// block, as what stands behind "case", is tried with those that get into its function.
func (p *program) reaching(m *mutation) []test {
	f := m.in
	if tests := p.running(f.source, func(b *block) bool { return b.start.compare(m.at) <= 0 && m.at.compare(b.end) < 0 }); tests != nil {
		return tests
	}
	return p.running(f.source, func(b *block) bool { return f.start.compare(b.start) <= 0 && b.end.compare(f.end) <= 0 })
}

// running returns the tests that get to a block of a file.
func (p *program) running(s *source, wanted func(*block) bool) []test {
	var tests []test
	file := path.Join(p.module, filepath.ToSlash(s.path))
	for i := range p.tests {
		t := &p.tests[i]
		if slices.ContainsFunc(t.blocks, func(b block) bool { return b.file == file && wanted(&b) }) {
			tests = append(tests, *t)
		}
	}
	return tests
}
