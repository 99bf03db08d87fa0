package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// roots are the modules that partita is built on. A program that imports
// package partition links these, what their packages need, and nothing else.
var roots = []string{
	"github.com/asynkron/protoactor-go",
	"github.com/hashicorp/golang-lru/v2",
	"go.etcd.io/bbolt",
	"go.uber.org/zap",
	"go.uber.org/zap/exp",
}

// pkg is what `go list` says about a package.
type pkg struct {
	ImportPath, Dir                    string
	Standard                           bool
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
	Module                             *struct {
		Path string
		Main bool
	}
}

// module returns the path of the package's module, "" in the standard library.
func (p *pkg) module() string {
	if p.Module == nil {
		return ""
	}
	return p.Module.Path
}

func (p *pkg) own() bool { return p.Module != nil && p.Module.Main }

// checkDeps fails if ./partition, below dir, links a module that is not needed
// by the packages which it uses of the roots.
func checkDeps(ctx context.Context, dir string, stdout io.Writer) error {
	packages, err := listDeps(ctx, dir, "./partition")
	if err != nil {
		return fmt.Errorf("deps: %w", err)
	}
	needed := needs(packages)
	linked := make(map[string]bool)
	extra := make(map[string]bool)
	for _, p := range packages {
		if p.Standard || p.own() {
			continue
		}
		linked[p.module()] = true
		if !needed[p.module()] {
			extra[fmt.Sprintf("%s, imported by %s", p.ImportPath, strings.Join(importers(packages, p.ImportPath), " and "))] = true
		}
	}
	if len(extra) > 0 {
		return fmt.Errorf("deps: partition links more than protoactor-go, golang-lru, bbolt, zap and what they need:\n  %s",
			strings.Join(slices.Sorted(maps.Keys(extra)), "\n  "))
	}
	_, _ = fmt.Fprintf(stdout, "deps: partition links %d modules: protoactor-go, golang-lru, bbolt, zap and what they need\n", len(linked))
	return nil
}

// listDeps returns the named package and everything that it links, by path.
func listDeps(ctx context.Context, dir, name string) (map[string]*pkg, error) {
	list, err := goList(ctx, dir, "-deps", name)
	packages := make(map[string]*pkg)
	for _, p := range list {
		packages[p.ImportPath] = p
	}
	return packages, err
}

// goList returns what `go list` says at dir.
func goList(ctx context.Context, dir string, args ...string) (packages []*pkg, err error) {
	const fields = "-json=ImportPath,Dir,Standard,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Module"
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", fields}, args...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(args, " "), withStderr(err))
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(pkg)
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list %s: %w", strings.Join(args, " "), err)
		}
		packages = append(packages, p)
	}
}

// needs returns the modules of the root packages that the module's own packages
// import, and of everything that those need.
func needs(packages map[string]*pkg) map[string]bool {
	var todo []string
	for _, p := range packages {
		if !p.own() {
			continue
		}
		for _, path := range p.Imports {
			if dep := packages[path]; dep != nil && slices.Contains(roots, dep.module()) {
				todo = append(todo, path)
			}
		}
	}
	seen := make(map[string]bool)
	modules := make(map[string]bool)
	for len(todo) > 0 {
		p := packages[todo[len(todo)-1]]
		todo = todo[:len(todo)-1]
		if p == nil || p.Standard || seen[p.ImportPath] {
			continue
		}
		seen[p.ImportPath] = true
		modules[p.module()] = true
		todo = append(todo, p.Imports...)
	}
	return modules
}

// importers returns the packages that import path, in order.
func importers(packages map[string]*pkg, path string) []string {
	var found []string
	for _, p := range packages {
		if slices.Contains(p.Imports, path) {
			found = append(found, p.ImportPath)
		}
	}
	slices.Sort(found)
	return found
}
