package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxCrossErrors is how many errors are told of a system.
const maxCrossErrors = 20

// checkCross type-checks the program for other systems, each GOOS/GOARCH: what the compiler would refuse is refused. Of
// packages that are not of this module, the bodies of functions are left out: a release compiles them. So it takes a tenth
// of the time that compilers take for the standard library of each system.
func checkCross(ctx context.Context, dir string, systems []string, stdout io.Writer) error {
	if len(systems) == 0 {
		return errors.New("cross: want systems, as in linux/arm64")
	}
	for _, system := range systems {
		goos, goarch, _ := strings.Cut(system, "/")
		sizes := types.SizesFor("gc", goarch)
		if sizes == nil {
			return fmt.Errorf("cross: %s: unknown processor, want one as in linux/arm64", system)
		}
		listed, err := crossList(ctx, dir, goos, goarch)
		if err != nil {
			return fmt.Errorf("cross: %s: %w", system, err)
		}
		c := crossed{fset: token.NewFileSet(), packages: map[string]*types.Package{"unsafe": types.Unsafe}, sizes: sizes}
		for _, p := range listed {
			c.check(p)
		}
		if len(c.errs) > 0 {
			return fmt.Errorf("cross: %s: %w", system, errors.Join(c.errs[:min(len(c.errs), maxCrossErrors)]...))
		}
		_, _ = fmt.Fprintf(stdout, "cross: %s: %d packages\n", system, len(listed))
	}
	return nil
}

// crossPkg is what `go list` says about a package that is compiled.
type crossPkg struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          struct {
		Main      bool
		GoVersion string
	}
}

// crossList lists the packages of the program, each behind those that it imports.
func crossList(ctx context.Context, dir, goos, goarch string) ([]*crossPkg, error) {
	env := append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	return goListAs[crossPkg](ctx, dir, env, "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./cmd/partita")
}

// crossed are the packages that are checked for a system.
type crossed struct {
	fset     *token.FileSet
	packages map[string]*types.Package
	sizes    types.Sizes
	errs     []error
}

func (c *crossed) check(p *crossPkg) {
	if p.ImportPath == "unsafe" {
		return
	}
	fail := func(err error) { c.errs = append(c.errs, err) }
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			fail(err)
			return
		}
		files = append(files, f)
	}
	config := types.Config{
		Sizes: c.sizes, IgnoreFuncBodies: !p.Module.Main, Error: fail, Importer: importFunc(func(path string) (*types.Package, error) {
			if mapped := p.ImportMap[path]; mapped != "" {
				path = mapped
			}
			if found := c.packages[path]; found != nil {
				return found, nil
			}
			return nil, fmt.Errorf("package %q is not listed", path)
		}),
	}
	if p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	c.packages[p.ImportPath], _ = config.Check(p.ImportPath, c.fset, files, nil) // Error is told
}

type importFunc func(path string) (*types.Package, error)

func (f importFunc) Import(path string) (*types.Package, error) { return f(path) }
