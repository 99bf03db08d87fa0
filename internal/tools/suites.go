package main

import (
	"fmt"
	"go/build"
	"path/filepath"
	"slices"
	"strings"
)

// suite is the tests of one package.
type suite struct{ dir, binary string }

// findSuites finds the tests of the package and of its rooms.
func (p *program) findSuites() {
	dirs := p.sourceDirs()
	if !slices.Contains(dirs, p.dir) {
		dirs = append(dirs, p.dir)
	}
	for i, dir := range dirs {
		if hasTests(p.root, dir) {
			p.suites = append(p.suites, suite{dir, filepath.Join(p.tmp, fmt.Sprintf("mutated-%d.test", i))})
		}
	}
}

// sourceDirs are the directories of what is changed.
func (p *program) sourceDirs() (dirs []string) {
	for _, s := range p.sources {
		dirs = append(dirs, filepath.Dir(s.path))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// ownerOf returns the package whose tests are a package's own as well: the one that alone may import it, if
// that has tests.
func ownerOf(root, dir string) string {
	above := "/" + filepath.ToSlash(dir) + "/"
	i := strings.LastIndex(above, "/internal/")
	if i < 0 {
		return dir
	}
	if owner := filepath.Join(".", above[:i]); hasTests(root, owner) {
		return owner
	}
	return dir
}

// hasTests reports whether there is a package that has tests.
func hasTests(root, dir string) bool {
	p, err := build.Default.ImportDir(filepath.Join(root, dir), 0)
	return err == nil && len(p.TestGoFiles)+len(p.XTestGoFiles) > 0
}
