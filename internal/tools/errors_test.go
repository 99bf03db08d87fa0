package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page of the errors has each error that users can name, and no other, as the code says.
func TestErrorsPage(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	if err := printErrors(root, &want); err != nil {
		t.Fatal(err)
	}
	if string(page) != want.String() {
		t.Error("docs/errors.md is not what the comments of the errors say: run `make errors`")
	}
	if n := strings.Count(want.String(), "\n### "); n < 70 {
		t.Errorf("got %d errors, want all", n)
	}
}

func TestErrorsAreTold(t *testing.T) {
	const told = "// ErrOne is returned when it is so.\n//\n// From: Fail.\n// Do: mend it.\n"
	const fail = "func Fail() error { return ErrOne }\n"
	for name, tt := range map[string]struct{ file, code, want string }{
		"told":        {"errors.go", told + "var ErrOne = errors.New(``)\n" + fail, ""},
		"not told":    {"errors.go", "// ErrOne is.\nvar ErrOne = errors.New(``)\n" + fail, "a.ErrOne: its comment must say"},
		"elsewhere":   {"a.go", told + "var ErrOne = errors.New(``)\n" + fail, "a/a.go declares ErrOne"},
		"from nobody": {"errors.go", told + "var ErrOne = errors.New(``)\n", "comes from Fail, which is not there"},
		"a type": {"errors.go", told + "var ErrOne = errors.New(``)\n" + fail + "type OneError struct{}\n" +
			"func (*OneError) Is(err error) bool { return err == ErrOne }\n", ""},
		"a type alone": {"errors.go", "// OneError is.\ntype OneError struct{}\n", "a.OneError: its comment must say"},
		"another name": {"errors.go", told + "var ErrOne = errors.New(``)\n" + fail + "var ErrTwo = a.ErrOne\n", ""},
		"of a room":    {"errors.go", "var (\n" + told + "ErrOne = room.ErrOne\n)\n" + fail, ""},
		"of nothing":   {"errors.go", "var ErrTwo = b.ErrOne\n", "a.ErrTwo is another name of b.ErrOne, which is not there"},
	} {
		root := write(t, filepath.Join("a", tt.file), "package a\n"+tt.code)
		_, err := readErrors(root)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
