package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestRaced(t *testing.T) {
	const alone = "package p\nimport \"testing\"\nfunc TestAlone(t *testing.T) {}\n"
	for _, tt := range []struct {
		name  string
		files []string // of package p
		want  bool
	}{
		{"nothing", []string{"p.go", "package p"}, false},
		{"goroutine", []string{"p.go", "package p\nfunc f() { go f() }"}, true},
		{"channel in a test", []string{"p.go", "package p", "q_test.go", "package p\nvar c chan int"}, true},
		{"channel in an external test", []string{"p.go", "package p", "q_test.go", "package p_test\nvar c chan int"}, true},
		{"lock", []string{"p.go", "package p\nimport \"sync\"\nvar mu sync.Mutex"}, true},
		{"parallel tests", []string{"p.go", "package p", "q_test.go", "package p\nimport \"testing\"\nfunc TestP(t *testing.T) { t.Parallel() }"}, true},
		{"handler", []string{"p.go", "package p\nimport _ \"net/http\""}, true},
		{"what it imports", []string{"p.go", "package p\nimport _ \"example.org/own/above\""}, true},
		{"what its test imports", []string{"p.go", "package p", "q_test.go", "package p_test\nimport _ \"example.org/own/above\""}, true},
		{"what imports nothing", []string{"p.go", "package p\nimport _ \"example.org/own/alone\""}, false},
		{"tests of what it imports", []string{"p.go", "package p\nimport _ \"example.org/own/tested\""}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := []string{
				"go.mod", "module example.org/own\n\ngo 1.26\n",
				"locked/l.go", "package locked\nvar c chan int",
				"above/a.go", "package above\nimport _ \"example.org/own/locked\"",
				"alone/a.go", "package alone", "tested/t.go", "package tested", "tested/t_test.go", "package tested\nvar c chan int",
				"p/alone_test.go", alone,
			}
			for i, f := range tt.files {
				if i%2 == 0 {
					f = "p/" + f
				}
				files = append(files, f)
			}
			dir := write(t, files...)
			got, err := concurrentPackages(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			if got["example.org/own/p"] != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRacedPrintsArguments(t *testing.T) {
	dir := write(t,
		"go.mod", "module example.org/own\n\ngo 1.26\n",
		"a/a.go", "package a\nvar c chan int", "b/b.go", "package b", "c/c.go", "package c\nvar c chan int",
		"unraced.tsv", "# Why.\nTestTwo\tslow\nTestOne\tslow\n", "wrong.tsv", "TestOne\n")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"./..."}, "example.org/own/a example.org/own/c\n"},
		{[]string{"./a", "./b"}, "example.org/own/a\n"},
		{[]string{"-without", filepath.Join(dir, "unraced.tsv"), "./a"}, "-skip=^(TestOne|TestTwo)$ example.org/own/a\n"},
	} {
		var out strings.Builder
		if err := raced(t.Context(), dir, tt.args, &out); err != nil || out.String() != tt.want {
			t.Errorf("%q: got %q, %v, want %q", tt.args, out.String(), err, tt.want)
		}
	}
	wantError(t, raced(t.Context(), dir, []string{"./b"}, &strings.Builder{}), "1 packages, in which nothing runs")
	wantError(t, raced(t.Context(), dir, []string{"-without", filepath.Join(dir, "wrong.tsv"), "./a"}, &strings.Builder{}), "no reason")
}

// What make race leaves out is there, once, and another test that it runs shows the same: the reason names it.
func TestUnracedIsShownOtherwise(t *testing.T) {
	root := filepath.Join("..", "..")
	reasons, err := readReasons(filepath.Join(root, "tests", "unraced.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	packages, err := goList(t.Context(), root, "./...")
	if err != nil {
		t.Fatal(err)
	}
	concurrent, err := concurrentPackages(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	in := make(map[string][]string) // the packages of a test
	for _, p := range packages {
		for name := range testsOf(t, p.Dir) {
			in[name] = append(in[name], p.ImportPath)
		}
	}
	for name, why := range reasons {
		if err := unracedFault(name, why, reasons, in, concurrent); err != "" {
			t.Errorf("tests/unraced.tsv: %s: %s", name, err)
		}
	}
}

var testName = regexp.MustCompile(`\bTest[A-Z]\w*`)

// unracedFault says what is wrong with a line of the list, if anything is.
func unracedFault(name, why string, reasons map[string]string, in map[string][]string, concurrent map[string]bool) string {
	switch {
	case len(in[name]) != 1:
		return "it is not in one package, but in these: " + strings.Join(in[name], " ")
	case !concurrent[in[name][0]]:
		return "no test of its package is run under the race detector"
	}
	for _, other := range testName.FindAllString(why, -1) {
		if reasons[other] == "" && slices.Contains(in[other], in[name][0]) {
			return ""
		}
	}
	return "the reason names no test of its package that shows the same and is run"
}

func TestUnracedFaults(t *testing.T) {
	in := map[string][]string{"TestA": {"p"}, "TestB": {"p"}, "TestC": {"p"}, "TestFar": {"q"}, "TestTwice": {"p", "q"}, "TestAlone": {"alone"}}
	reasons := map[string]string{"TestA": "x", "TestB": "x"}
	for _, tt := range []struct{ name, why, want string }{
		{"TestA", "as TestC does", ""},
		{"TestA", "as TestB and TestC do", ""},
		{"TestA", "it is slow", "names no test"},
		{"TestA", "as TestB does", "names no test"},
		{"TestA", "as TestFar does", "names no test"},
		{"TestGone", "as TestC does", "not in one package"},
		{"TestTwice", "as TestC does", "not in one package"},
		{"TestAlone", "as TestC does", "no test of its package"},
	} {
		got := unracedFault(tt.name, tt.why, reasons, in, map[string]bool{"p": true, "q": true})
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s, %s: got %q, want %q", tt.name, tt.why, got, tt.want)
		}
	}
}
