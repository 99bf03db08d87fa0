package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// named matches what docs/guarantees.md calls by name: a package, or a test of the package
// named last in its line. An indented line goes on with the package of the line before.
var named = regexp.MustCompile("`([a-z][a-z/]*)`|\\b((?:Test|Fuzz|Benchmark)[A-Z]\\w*)")

// missingTests returns the tests that a page names and that are not in the package that it
// names them with, each with the line, and how many there are in all.
func missingTests(t *testing.T, root, page string) (missing []string, tests int) {
	t.Helper()
	packages := make(map[string]map[string]bool)
	dir := ""
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "  ") {
			dir = ""
		}
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

// unshown returns the promises of a page that do not say what they rest on, or name no test
// that shows them, and how many promises there are in all. A promise is a section of a chapter
// of promises.
func unshown(page string) (without []string, promises int) {
	for _, chapter := range strings.Split(page, "\n## ")[1:] {
		if !strings.HasPrefix(chapter, "Promises: ") {
			continue
		}
		for _, section := range strings.Split(chapter, "\n### ")[1:] {
			promises++
			promise, text, _ := strings.Cut(section, "\n")
			before, tests, _ := strings.Cut(text, "\nTests:\n")
			_, reason, _ := strings.Cut(before, "\nRests on:")
			if strings.TrimSpace(reason) == "" || !shows(tests) {
				without = append(without, promise)
			}
		}
	}
	return without, promises
}

// shows reports whether a list names a test.
func shows(list string) bool {
	return slices.ContainsFunc(named.FindAllStringSubmatch(list, -1), func(m []string) bool { return m[2] != "" })
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
	without, promises := unshown(string(page))
	for _, promise := range without {
		t.Errorf("docs/guarantees.md does not say what %q rests on, or names no test that shows it", promise)
	}
	if promises < 30 {
		t.Errorf("got %d promises, want each in a section of its own", promises)
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
		{"- `a/b`: TestOne,\n  FuzzTwo", ""},
		{"- `a/b`: TestOne,\n  FuzzTwo\n  TestTwo", "a/b TestTwo"},
		{"- `a/b`: TestOne\n- TestOne", " TestOne"},
		{"- `a/b`: TestOne\n\n  FuzzTwo", " FuzzTwo"},
	} {
		missing, tests := missingTests(t, root, tt.page)
		if got := strings.Join(missing, ", "); got != tt.want || tests == 0 {
			t.Errorf("%q: got %q of %d missing, want %q", tt.page, got, tests, tt.want)
		}
	}
}

func TestUnshown(t *testing.T) {
	for _, tt := range []struct{ section, want string }{
		{"It holds.\n\nRests on: a lock.\n\nTests:\n\n- `a/b`: TestOne\n", ""},
		{"Rests on:\n\n- A lock.\n\nTests:\n\n- `a/b`: FuzzTwo\n", ""},
		{"\nTests:\n\n- `a/b`: TestOne\n", "A promise"},
		{"\nRests on:\n\nTests:\n\n- `a/b`: TestOne\n", "A promise"},
		{"\nRests on: a lock.\n", "A promise"},
		{"\nRests on: a lock, see TestOne.\n\nTests:\n\n- `a/b`\n", "A promise"},
		{"\nRests on: a lock.\n\nTests:\n\n### Another\n\nRests on: it.\n\nTests:\n\n- `a/b`: TestOne\n", "A promise"},
	} {
		page := "# Guarantees\n\n### Not one\n\n## Promises: all\n\n### A promise\n\n" + tt.section + "\n## More\n\n### Nor this\n"
		without, promises := unshown(page)
		if got := strings.Join(without, ", "); got != tt.want || promises == 0 {
			t.Errorf("%q: got %q of %d without, want %q", tt.section, got, promises, tt.want)
		}
	}
}
