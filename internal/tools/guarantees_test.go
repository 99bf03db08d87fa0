package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// named matches what docs/guarantees.md calls by name: a package, or a test of the package
// named last in its line.
var named = regexp.MustCompile("`([a-z][a-z/]*)`|\\b((?:Test|Fuzz|Benchmark)[A-Z]\\w*)")

// missingTests returns the tests that a page names and that are not in the package that it
// names them with, each with the line, and how many there are in all.
func missingTests(t *testing.T, root, page string) (missing []string, tests int) {
	t.Helper()
	packages := make(map[string]map[string]bool)
	for line := range strings.Lines(page) {
		dir := ""
		for _, m := range named.FindAllStringSubmatch(line, -1) {
			if info, err := os.Stat(filepath.Join(root, m[1])); m[1] != "" && err == nil && info.IsDir() {
				dir = m[1]
			}
			if m[2] == "" {
				continue
			}
			tests++
			if packages[dir] == nil {
				packages[dir] = testsOf(t, filepath.Join(root, dir))
			}
			if dir == "" || !packages[dir][m[2]] {
				missing = append(missing, dir+" "+m[2])
			}
		}
	}
	return missing, tests
}

// testsOf returns the tests, fuzz targets and benchmarks of a package.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests := make(map[string]bool)
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[f.Name.Name] = true
			}
		}
	}
	return tests
}

// Every test that the guarantees rest on is there.
func TestGuaranteesNameTests(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	missing, tests := missingTests(t, root, string(page))
	for _, test := range missing {
		t.Errorf("docs/guarantees.md names %s, which is not there", test)
	}
	if tests < 50 {
		t.Errorf("got %d tests named, want those of every promise", tests)
	}
}

func TestMissingTests(t *testing.T) {
	root := write(t, "a/b/x_test.go", "package b\nfunc TestOne(t *testing.T) {}\nfunc FuzzTwo(f *testing.F) {}\nfunc (s suite) TestMethod() {}",
		"c/x.go", "package c\nfunc TestThree() {}")
	for _, tt := range []struct{ page, want string }{
		{"`a/b` TestOne, FuzzTwo; `fdatasync` TestOne", ""},
		{"`a/b` TestTwo", "a/b TestTwo"},
		{"`a/b` TestMethod", "a/b TestMethod"},
		{"`a/b` TestOne, `c` TestThree", "c TestThree"},
		{"`a/b`\nTestOne", " TestOne"},
	} {
		missing, tests := missingTests(t, root, tt.page)
		if got := strings.Join(missing, ", "); got != tt.want || tests == 0 {
			t.Errorf("%q: got %q of %d missing, want %q", tt.page, got, tests, tt.want)
		}
	}
}
