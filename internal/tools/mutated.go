package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// program is a package, and rooms below it, with all their changes in them, and what tests them: a binary for
// each of them that has tests. An environment variable says which change is made, so that the binaries are built
// once and not for each.
type program struct {
	root    string // of the module, as module is its path
	module  string
	dir     string // of the package, below root, as those of the suites
	tmp     string
	limit   time.Duration
	workers int // how many processes run tests at the same time
	sources []*source
	suites  []suite
	tests   []test // the quickest first
	unbuilt int
	mu      sync.Mutex
	sound   map[string]bool // tests that pass without a change
}

// changeVariable is the number of the change that is made.
const changeVariable = "MUTATE_CHANGE"

// dataLimit is how many KiB of memory the tests may take.
const dataLimit = 4 << 20

// switchFile is added to the package.
const switchFile = `package %s

import (
	"os"
	"strconv"
)

var mutateChange, _ = strconv.Atoi(os.Getenv("` + changeVariable + `"))
`

// build makes the program, and learns which test gets where. Changes that the compiler does not
// take are left out.
func (p *program) build(ctx context.Context) error {
	if err := os.MkdirAll(p.tmp, 0o700); err != nil {
		return err
	}
	if p.findSuites(); len(p.suites) == 0 {
		return errors.New("there are no tests")
	}
	if err := p.measure(ctx); err != nil {
		return err
	}
	p.sound = make(map[string]bool)
	for _, s := range p.suites {
		if err := p.buildSuite(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) buildSuite(ctx context.Context, s suite) error {
	for {
		overlay, err := p.overlay()
		if err != nil {
			return err
		}
		// -e: all errors, not the first ten.
		output, err := p.goTest(ctx, "-c", "-vet=off", "-gcflags=-e", "-overlay", overlay, "-o", s.binary, "./"+s.dir)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if n := p.leaveOut(output); n == 0 {
			return fmt.Errorf("does not build: %w:\n%s", err, output)
		}
	}
}

// goTest runs go test in the module's directory. What it links nobody debugs: without tables for that it links faster.
func (p *program) goTest(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-ldflags=-w"}, args...)...)
	cmd.Dir = p.root
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// overlay writes the files in which each function begins with its changes.
func (p *program) overlay() (string, error) {
	texts := make(map[string]string)
	for _, s := range p.sources {
		path := filepath.Join(p.root, s.path)
		texts[path] = s.switched()
		texts[filepath.Join(filepath.Dir(path), "mutate_switch.go")] = fmt.Sprintf(switchFile, s.pkg)
	}
	return writeOverlay(p.tmp, texts)
}

// switched returns the file with the changes in it, and notes the lines of each:
//
//	func (c *Core) grantable(until Timestamp) error {
//		switch mutateChange {
//		case 17:
//			return func() error { …the body as changed… }()
//		}
//		…the body…
//	}
func (s *source) switched() string {
	var b strings.Builder
	line, done := 1, 0
	write := func(text string) {
		b.WriteString(text)
		line += strings.Count(text, "\n")
	}
	for _, f := range s.functions {
		write(s.text[done:f.from])
		done = f.from
		write("\nswitch mutateChange {\n")
		for _, m := range f.changes {
			if m.number == 0 {
				continue
			}
			m.first = line
			if call := "func() " + f.results + " {" + m.body + "}()"; f.results == "" {
				write(fmt.Sprintf("case %d:\n%s\nreturn\n", m.number, call))
			} else {
				write(fmt.Sprintf("case %d:\nreturn %s\n", m.number, call))
			}
			m.last = line - 1
		}
		write("}\n")
	}
	write(s.text[done:])
	return b.String()
}

var compileError = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: `)

// leaveOut takes away the changes in which the compiler found errors, and returns how many they are.
func (p *program) leaveOut(output string) (n int) {
	wrong := make(map[string]bool)
	for _, found := range compileError.FindAllStringSubmatch(output, -1) {
		path := found[1]
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.root, path)
		}
		wrong[path+":"+found[2]] = true
	}
	for _, m := range p.planted() {
		path := overlaid(p.tmp, filepath.Join(p.root, m.in.source.path))
		for line := m.first; line <= m.last; line++ {
			if wrong[fmt.Sprintf("%s:%d", path, line)] {
				m.number = 0
				n++
				break
			}
		}
	}
	p.unbuilt += n
	return n
}

// planted returns the changes that are in the program.
func (p *program) planted() (all []*mutation) {
	for _, s := range p.sources {
		for _, f := range s.functions {
			for _, m := range f.changes {
				if m.number != 0 {
					all = append(all, m)
				}
			}
		}
	}
	return all
}

// tryAll makes each change and reports what caught it.
func (p *program) tryAll(ctx context.Context, report func(*mutation, string)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	tokens := make(chan struct{}, p.workers)
	for _, m := range p.planted() {
		tokens <- struct{}{}
		wg.Go(func() {
			defer func() { <-tokens }()
			by, err := p.try(ctx, m)
			if err != nil {
				cancel(err)
				return
			}
			report(m, by)
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// try makes a change and returns which of the tests caught it: quick ones first, since most
// changes are caught by many. What hangs must do so twice: the machine may have stood still.
func (p *program) try(ctx context.Context, m *mutation) (string, error) {
	tests := p.reaching(m)
	for from := 0; from < len(tests); {
		to := from + 1
		for to < len(tests) && tests[to].took < max(quick, 8*tests[from].took) {
			to++
		}
		for _, s := range p.suites {
			if by, err := p.meetTwice(ctx, m, testsIn(tests[from:to], s)); err != nil || by != "" {
				return by, err
			}
		}
		from = to
	}
	return "", nil
}

// testsIn returns those of some tests that a suite has.
func testsIn(tests []test, s suite) []test {
	return slices.DeleteFunc(slices.Clone(tests), func(t test) bool { return t.in != s })
}

// meetTwice is meet, again if a test hangs, for sound tests of one suite. A test of another package than the
// change is named with it.
func (p *program) meetTwice(ctx context.Context, m *mutation, tests []test) (string, error) {
	if len(tests) == 0 {
		return "", nil
	}
	by, err := p.meet(ctx, m, tests)
	if err == nil && strings.HasPrefix(by, hangs) {
		by, err = p.meet(ctx, m, tests)
	}
	if err == nil && by != "" {
		err = p.checkSound(ctx, by, tests)
	}
	if dir := tests[0].in.dir; by != "" && dir != filepath.Dir(m.in.source.path) {
		by += " of " + dir
	}
	return by, err
}

// meet makes a change and returns which of some tests caught it.
func (p *program) meet(ctx context.Context, m *mutation, tests []test) (string, error) {
	output, err := p.run(ctx, m.number, tests)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return catcher(output, err)
	}
	return "", nil
}

// checkSound makes sure that what caught a change, one of some tests, passes in the same program
// without it. Only those that are asked are run: to run all takes longer than to try a few changes.
func (p *program) checkSound(ctx context.Context, by string, tests []test) error {
	if i := slices.IndexFunc(tests, func(t test) bool { return t.name == by }); i >= 0 {
		tests = tests[i : i+1]
	}
	tests = p.unsound(tests)
	if len(tests) == 0 {
		return nil
	}
	if output, err := p.run(ctx, 0, tests); err != nil {
		return fmt.Errorf("tests fail without a change: %w:\n%s", err, output)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range tests {
		p.sound[tests[i].id()] = true
	}
	return nil
}

// unsound returns the tests that have not passed without a change yet.
func (p *program) unsound(tests []test) []test {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(tests), func(t test) bool { return p.sound[t.id()] })
}

// quick is what a test may take to be run in the first round.
const quick = 50 * time.Millisecond

// patience is how long tests may wait that usually take so long in sum.
func (p *program) patience(usual time.Duration) time.Duration { return 4*usual + p.limit }

// run runs tests of one suite with a change made, 0 being none. Besides the limit on how long they may wait
// there is one on what they compute, which does not depend on what else the machine does, and one
// on memory: some changes ask for it without end.
func (p *program) run(ctx context.Context, change int, tests []test) (string, error) {
	var names []string
	var usual time.Duration
	for i := range tests {
		names, usual = append(names, tests[i].name), usual+tests[i].took
	}
	limits := fmt.Sprintf("ulimit -t %d && ulimit -d %d && exec \"$0\" \"$@\"", 1+int((4*usual+p.limit/12).Seconds()), dataLimit)
	cmd := exec.CommandContext(ctx, "sh", "-c", limits, tests[0].in.binary, "-test.short", "-test.failfast",
		"-test.timeout", p.patience(usual).String(), "-test.run", "^("+strings.Join(names, "|")+")$")
	cmd.Dir = filepath.Join(p.root, tests[0].in.dir)
	// Tests that are killed leave their files.
	leaveNoTrace(cmd, fmt.Sprintf("%s=%d", changeVariable, change), "TMPDIR="+p.tmp)
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.CombinedOutput()
	return string(output), err
}
