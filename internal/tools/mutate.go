package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"go/build"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// mutate changes small things in the code, one at a time, and fails if the package's own
// tests do not notice, unless a list says why nobody can. A package below internal is a room of the package
// above, whose tests count as well.
//
// It is our own since the tools that do this did not serve, when they were looked at with Go 1.26.
// Gremlins 0.6.0, the one with a release that can be installed and is kept up, has no list of
// excuses, leaves out no statements, and derives the time that a mutant may take from a run of the
// tests: with a warm build cache all 550 of its mutants of internal/sequencer were "timed out", which
// it counts neither as killed nor as alive. go-mutesting moves its mutants into the checkout, and its
// releases, v2 without that in the module's path, cannot be required. Ooze, last released in 2023, runs
// one command for all mutants of a repository. All of them build the tests anew for each
// mutant; here a package's tests are built once, and a mutant meets only those that get to it.
func mutate(ctx context.Context, dir string, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	sample := flags.Int("sample", 0, "how many changes are tried; 0: all")
	seed := flags.Uint64("seed", uint64(time.Now().UnixNano()%1_000_000), "which ones")
	match := flags.String("match", ".", "try the changes whose names match this regular expression")
	excused := flags.String("excused", "", "a file with the changes that make no difference")
	workers := flags.Int("workers", runtime.GOMAXPROCS(0), "how many processes run tests at the same time")
	limit := flags.Duration("timeout", 2*time.Minute, "how long tests may wait, beyond four times what they usually take, before they count as hanging")
	if err := flags.Parse(args); err != nil {
		return err
	}
	programs, err := chosen(dir, flags.Args(), *match, *excused, *sample, *seed)
	if err != nil {
		return fmt.Errorf("mutate: %w", err)
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("mutate: %w", err)
	}
	module, err := modulePath(ctx, root)
	if err != nil {
		return fmt.Errorf("mutate: %w", err)
	}
	tmp, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return fmt.Errorf("mutate: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	n := tally{stdout: stdout}
	for i, p := range programs {
		p.root, p.module = root, module
		p.tmp, p.limit, p.workers = filepath.Join(tmp, fmt.Sprint(i)), *limit, *workers
		if err := p.build(ctx); err != nil {
			return fmt.Errorf("mutate: %s: %w", p.dir, err)
		}
		n.unbuilt += p.unbuilt
	}
	leaveSpares(programs, *sample)
	for _, p := range programs {
		if err := p.tryAll(ctx, n.add); err != nil {
			return fmt.Errorf("mutate: %s: %w", p.dir, err)
		}
	}
	_, _ = fmt.Fprintf(stdout, "mutate: seed=%d planted=%d caught=%d survived=%d unbuilt=%d\n",
		*seed, n.tried, n.tried-n.survived, n.survived, n.unbuilt)
	if n.survived > 0 {
		return fmt.Errorf("mutate: %d changes were not noticed", n.survived)
	}
	return nil
}

// modulePath returns the path of the module at a directory.
func modulePath(ctx context.Context, root string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m")
	cmd.Dir = root
	output, err := cmd.Output()
	return strings.TrimSpace(string(output)), err
}

// tally counts and prints what became of each change.
type tally struct {
	mu                       sync.Mutex
	stdout                   io.Writer
	tried, survived, unbuilt int
}

// add counts a change. What caught it is empty if nothing did.
func (t *tally) add(m *mutation, by string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tried++
	if by == "" {
		t.survived++
		_, _ = fmt.Fprintf(t.stdout, "mutate: %s SURVIVED (line %d)\n", m.name, m.at.line)
		return
	}
	_, _ = fmt.Fprintf(t.stdout, "mutate: %s caught by %s\n", m.name, by)
}

// chosen returns a program for each package of the files, rooms and their owner being one, with the changes
// that match, are not excused, and are drawn.
func chosen(dir string, files []string, match, excusesPath string, sample int, seed uint64) ([]*program, error) {
	selected, err := regexp.Compile(match)
	if err != nil {
		return nil, err
	}
	excused, err := readExcuses(dir, excusesPath)
	if err != nil {
		return nil, err
	}
	var programs []*program
	var all []*mutation
	for _, path := range files {
		built, err := build.Default.MatchFile(filepath.Join(dir, filepath.Dir(path)), filepath.Base(path))
		if err != nil {
			return nil, err
		}
		if !built {
			continue // it is for other systems: nothing here would notice
		}
		s, err := readSource(dir, path)
		if err != nil {
			return nil, err
		}
		owner := ownerOf(dir, filepath.Dir(path))
		i := slices.IndexFunc(programs, func(p *program) bool { return p.dir == owner })
		if i < 0 {
			i, programs = len(programs), append(programs, &program{dir: owner})
		}
		programs[i].sources = append(programs[i].sources, s)
		for _, f := range s.functions {
			f.changes = slices.DeleteFunc(f.changes, func(m *mutation) bool { return excused[m.name] || !selected.MatchString(m.name) })
			all = append(all, f.changes...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("nothing to change in %q matches %q and is not excused", files, match)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i, m := range all {
		if sample == 0 || i < drawn*sample {
			m.number = i + 1
		}
	}
	return slices.DeleteFunc(programs, func(p *program) bool { return len(p.planted()) == 0 }), nil
}

// drawn is how many changes are drawn for each that is to be tried: some do not build.
const drawn = 3

// leaveSpares leaves out what was drawn beyond the sample and built, the last first.
func leaveSpares(programs []*program, sample int) {
	var built []*mutation
	for _, p := range programs {
		built = append(built, p.planted()...)
	}
	slices.SortFunc(built, func(a, b *mutation) int { return cmp.Compare(a.number, b.number) })
	if sample > 0 && len(built) > sample {
		for _, m := range built[sample:] {
			m.number = 0
		}
	}
}
