package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes files below a new directory: path, content, path, content …
func write(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got error %q, want one with %q", err, part)
		}
	}
}

func TestCore(t *testing.T) {
	for _, tt := range []struct{ code, want string }{
		{"func f() { go f() }", "x.go:2:12: the core has no goroutine"},
		{"func f() { select {} }", "x.go:2:12: the core has no select"},
		{"type s struct { c chan int }", "x.go:2:19: the core has no channel"},
		{"func f(c C) { c <- 1 }", "x.go:2:15: the core has no send on a channel"},
		{"func f(c C) int { return <-c }", "x.go:2:26: the core has no receive from a channel"},
		{"func f(p *int) int { return -*p }", ""},
	} {
		dir := write(t, "x.go", "package p\n"+tt.code, "x_test.go", "package p\nfunc g() { go g() }")
		var out strings.Builder
		err := checkCore([]string{dir}, &out)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.code, err)
			}
			continue
		}
		wantError(t, err, "1 places")
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: got %q, want %q", tt.code, out.String(), tt.want)
		}
	}
	wantError(t, checkCore([]string{t.TempDir()}, &strings.Builder{}), "no Go file")
}

func TestFuzzTargets(t *testing.T) {
	dir := write(t,
		"go.mod", "module example.org/own\ngo 1.26\n",
		"a/a.go", "package a",
		"a/a_test.go", "package a\nimport \"testing\"\nfunc FuzzIn(f *testing.F) {}\nfunc TestX(t *testing.T) {}",
		"a/b_test.go", "package a_test\nimport \"testing\"\nfunc FuzzOut(f *testing.F) { f.Fuzz(func(t *testing.T, b byte) {}) }",
	)
	got, err := fuzzTargets(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "a")
	want := []fuzzTarget{
		{target{"example.org/own/a", "FuzzIn"}, own, "example.org/own"}, {target{"example.org/own/a", "FuzzOut"}, own, "example.org/own"},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
	wantError(t, fuzz(t.Context(), dir, []string{"-match", "nobody"}, &strings.Builder{}), "none of 2 fuzz targets")
}

// An input that fails is made smaller, which may take forever, in a bounded number of runs. This one
// cannot be made smaller.
func TestFuzzBoundsMinimizing(t *testing.T) {
	dir := write(t,
		"go.mod", "module example.org/own\n\ngo 1.26\n",
		"a/a_test.go", `package a

import (
	"bytes"
	"testing"
)

func FuzzA(f *testing.F) {
	seed := bytes.Repeat([]byte("a"), 1000)
	f.Add(seed)
	runs, failed := 0, false
	f.Fuzz(func(t *testing.T, b []byte) {
		if failed {
			runs++
		}
		if runs > 5000 {
			t.Fatal("minimizing goes on")
		}
		if len(b) == len(seed) && !bytes.Equal(b, seed) {
			failed = true
			t.Fatal("found")
		}
	})
}
`)
	var out strings.Builder
	wantError(t, fuzz(t.Context(), dir, []string{"-time", "1h"}, &out), "FuzzA")
	got := out.String()
	if !strings.Contains(got, ": found\n") || strings.Contains(got, "minimizing goes on") {
		t.Errorf("got output %q, want what was found, and minimizing to end", got)
	}
	if !strings.Contains(got, "gathering baseline coverage") || strings.Contains(got, "without coverage guidance") {
		t.Errorf("got output %q, want fuzzing that sees where an input gets to", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "testdata", "fuzz", "FuzzA")); err != nil {
		t.Errorf("what was found is not kept beside the tests: %v", err)
	}
}

func TestEndedTooLate(t *testing.T) {
	const late = "fuzz: elapsed: 10s, execs: 9 (0/sec)\n--- FAIL: FuzzX (10.03s)\n    context deadline exceeded\nFAIL\nexit status 1\n"
	for _, tt := range []struct {
		output string
		want   bool
	}{
		{late, true},
		{"--- FAIL: FuzzX (1.03s)\n    --- FAIL: FuzzX (0.00s)\n        x_test.go:9: context deadline exceeded\nFAIL\n", false},
		{late + "    Failing input written to testdata/fuzz/FuzzX/1\n", false},
		{"panic: boom\n" + late, false},
		{"# example.org/own/a\nsyntax error\n", false},
	} {
		if got := endedTooLate(tt.output); got != tt.want {
			t.Errorf("%q: got %v, want %v", tt.output, got, tt.want)
		}
	}
}

func TestOutput(t *testing.T) {
	for _, tt := range []struct{ check, input, want string }{
		{"plain", "a\tb\n│ 1,234 │\n", ""},
		{"plain", "", "nothing was printed"},
		{"plain", "a\nb\rc", `line 2: unexpected "\r"`},
		{"plain", "\x1b[2K", `line 1: unexpected "\x1b"`},
		{"plain", "a\xff", `line 1: unexpected "\xff"`},
		{"json", `{"a":1} [2]`, ""},
		{"json", " ", "nothing was printed"},
		{"json", `{"a":1} oops`, "value 2"},
		{"json", `{"a":`, "value 1"},
	} {
		err := run(t.Context(), []string{tt.check}, strings.NewReader(tt.input), &strings.Builder{})
		if tt.want != "" {
			wantError(t, err, tt.check, tt.want)
		} else if err != nil {
			t.Errorf("%s %q: %v", tt.check, tt.input, err)
		}
	}
	wantError(t, run(t.Context(), nil, nil, nil), "which check")
	wantError(t, run(t.Context(), []string{"x"}, nil, nil), "unknown check")
}
