package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

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
	in := make(map[string][]string) // the packages of a test
	for _, p := range packages {
		for name := range testsOf(t, p.Dir) {
			in[name] = append(in[name], p.ImportPath)
		}
	}
	for name, why := range reasons {
		if err := unracedFault(name, why, reasons, in); err != "" {
			t.Errorf("tests/unraced.tsv: %s: %s", name, err)
		}
	}
}

var testName = regexp.MustCompile(`\bTest[A-Z]\w*`)

// unracedFault says what is wrong with a line of the list, if anything is.
func unracedFault(name, why string, reasons map[string]string, in map[string][]string) string {
	switch {
	case len(in[name]) != 1:
		return "it is not in one package, but in these: " + strings.Join(in[name], " ")
	case strings.HasSuffix(in[name][0], "/internal/sequencer"):
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
	in := map[string][]string{"TestA": {"p"}, "TestB": {"p"}, "TestC": {"p"}, "TestFar": {"q"}, "TestTwice": {"p", "q"}, "TestAlone": {"own/internal/sequencer"}}
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
		got := unracedFault(tt.name, tt.why, reasons, in)
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s, %s: got %q, want %q", tt.name, tt.why, got, tt.want)
		}
	}
}
