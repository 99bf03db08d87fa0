package main

import (
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// mutate changes small things in the code, one at a time, and fails if the package's own
// tests do not notice, unless a list says why nobody can. The tools that do this
// derive the time that a mutant may take from a run of the tests, and call what
// took longer neither killed nor alive; here it is a setting, and a test that hangs has noticed.
func mutate(ctx context.Context, dir string, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	sample := flags.Int("sample", 20, "how many changes are tried")
	seed := flags.Uint64("seed", uint64(time.Now().UnixNano()%1_000_000), "which ones")
	limit := flags.Duration("timeout", 2*time.Minute, "how long the tests of one change may take")
	excused := flags.String("excused", "", "a file with the changes that make no difference")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := mutations(dir, flags.Args())
	if err != nil {
		return fmt.Errorf("mutate: %w", err)
	}
	excuses, err := readExcuses(*excused)
	if err != nil {
		return fmt.Errorf("mutate: %w", err)
	}
	random := rand.New(rand.NewPCG(*seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	g := &garden{dir: dir, limit: *limit, stdout: stdout}
	tried, survived, unbuilt := 0, 0, 0
	for i := range all {
		if tried == *sample {
			break
		}
		p := &all[i]
		if excuses[p.name] {
			continue
		}
		output, caught, err := g.growOne(ctx, p)
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil:
			unbuilt++
			continue
		case !caught:
			survived++
			_, _ = fmt.Fprintf(stdout, "mutate: %s SURVIVED\n%s", p.name, output)
		default:
			_, _ = fmt.Fprintf(stdout, "mutate: %s caught\n", p.name)
		}
		tried++
	}
	_, _ = fmt.Fprintf(stdout, "mutate: seed=%d possible=%d planted=%d caught=%d survived=%d unbuilt=%d\n",
		*seed, len(all), tried, tried-survived, survived, unbuilt)
	if survived > 0 {
		return fmt.Errorf("mutate: %d changes were not noticed", survived)
	}
	return nil
}

// growOne plants a change and runs the tests of its package.
func (g *garden) growOne(ctx context.Context, p *plant) (output string, caught bool, err error) {
	overlay, remove, err := g.overlay(p)
	if err != nil {
		return "", false, err
	}
	defer remove()
	return g.test(ctx, overlay, p.tests[0].importPath, p.tests[0].name)
}

// readExcuses reads the names of changes that make no difference. A name ends at a
// tab, behind which stands why.
func readExcuses(path string) (map[string]bool, error) {
	excuses := make(map[string]bool)
	if path == "" {
		return excuses, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		name, why, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("%s: %q: got no reason", path, name)
		}
		excuses[name] = true
	}
	return excuses, nil
}

// mutations returns what can be changed in files.
func mutations(dir string, files []string) ([]plant, error) {
	var all []plant
	for _, path := range files {
		source, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		pkg := "./" + filepath.ToSlash(filepath.Dir(path))
		seen := make(map[string]int)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			for _, e := range edits(f, func(p token.Pos) int { return set.Position(p).Offset }, source) {
				text := string(source[:e.from]) + e.now + string(source[e.to:])
				// Without a line, the name outlives changes elsewhere in the file.
				name := fmt.Sprintf("%s %s: %s -> %s", path, f.Name.Name, squeeze(string(source[e.from:e.to])), squeeze(e.now))
				if seen[name]++; seen[name] > 1 {
					name = fmt.Sprintf("%s (%d)", name, seen[name])
				}
				all = append(all, plant{name: name, tests: []target{{pkg, "Test.*"}}, changed: []change{{path, text}}})
			}
		}
	}
	return all, nil
}

// squeeze makes code one short line.
func squeeze(code string) string {
	code = strings.Join(strings.Fields(code), " ")
	if len(code) > 60 {
		code = code[:60]
	}
	return code
}
