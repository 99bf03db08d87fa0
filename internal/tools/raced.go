package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// raced prints the arguments of go test -race: the packages of the module at dir that may have races, and
// -skip with the tests that a list leaves out. What one goroutine does alone has no race.
func raced(ctx context.Context, dir string, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("raced", flag.ContinueOnError)
	list := flags.String("without", "", "the list of the tests to leave out, each with a reason")
	if err := flags.Parse(args); err != nil {
		return err
	}
	reasons, err := readReasons(*list)
	if err != nil {
		return fmt.Errorf("raced: %w", err)
	}
	selected, err := goList(ctx, dir, flags.Args()...)
	if err != nil {
		return fmt.Errorf("raced: %w", err)
	}
	concurrent, err := concurrentPackages(ctx, dir)
	if err != nil {
		return fmt.Errorf("raced: %w", err)
	}
	words := []string{"-skip=^(" + strings.Join(slices.Sorted(maps.Keys(reasons)), "|") + ")$"}
	if len(reasons) == 0 {
		words = nil
	}
	found := false
	for _, p := range selected {
		if concurrent[p.ImportPath] {
			words, found = append(words, p.ImportPath), true
		}
	}
	if !found {
		return fmt.Errorf("raced: %d packages, in which nothing runs beside anything else: want others", len(selected))
	}
	_, _ = fmt.Fprintln(stdout, strings.Join(words, " "))
	return nil
}

// concurrentPackages are those of the module at dir where something may run beside something else: in them,
// in their tests, or in what these import of the module.
func concurrentPackages(ctx context.Context, dir string) (map[string]bool, error) {
	list, err := goList(ctx, dir, "./...")
	if err != nil {
		return nil, err
	}
	g := graph{packages: make(map[string]*pkg), code: make(map[string]bool)}
	for _, p := range list {
		g.packages[p.ImportPath] = p
	}
	concurrent := make(map[string]bool)
	var errs []error
	for path, p := range g.packages {
		tests, err := anyConcurrent(p.Dir, slices.Concat(p.TestGoFiles, p.XTestGoFiles))
		errs = append(errs, err)
		inCode, err := g.concurrent(append([]string{path}, slices.Concat(p.TestImports, p.XTestImports)...))
		errs = append(errs, err)
		concurrent[path] = tests || inCode
	}
	return concurrent, errors.Join(errs...)
}

// graph is the module's packages by import path.
type graph struct {
	packages map[string]*pkg
	// code says of a package whether something runs beside something else in it, or what it imports.
	code map[string]bool
}

// concurrent reports whether the code of any of these packages, tests excepted, is concurrent.
func (g *graph) concurrent(paths []string) (bool, error) {
	for _, path := range paths {
		p := g.packages[path]
		if p == nil {
			continue
		}
		if _, known := g.code[path]; !known {
			found, err := anyConcurrent(p.Dir, p.GoFiles)
			if err == nil && !found {
				found, err = g.concurrent(p.Imports)
			}
			if err != nil {
				return false, err
			}
			g.code[path] = found
		}
		if g.code[path] {
			return true, nil
		}
	}
	return false, nil
}

// anyConcurrent reports whether any of these files has to do with more than one goroutine.
func anyConcurrent(dir string, names []string) (found bool, err error) {
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			found = found || concurrency(node) != "" || startsOther(node)
			return !found
		})
	}
	return found, nil
}

// startsOther reports whether the node lets somebody else start a goroutine: it calls a method that does, or
// imports a package that is of no use otherwise.
func startsOther(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.SelectorExpr:
		return slices.Contains([]string{"Go", "AfterFunc", "Parallel", "RunParallel"}, node.Sel.Name)
	case *ast.ImportSpec:
		path, err := strconv.Unquote(node.Path.Value)
		return err != nil || path == "sync" || strings.HasPrefix(path, "net/http") || strings.Contains(path, "/protoactor-go/")
	}
	return false
}
