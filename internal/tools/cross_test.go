package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program that calls what another system has not is refused for that system only, and so is an error of types in it.
func TestCross(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "cmd", "partita")
	if err := os.MkdirAll(program, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"../../go.mod":  "module m\n\ngo 1.24\n",
		"main.go":       "package main\n\nimport \"syscall\"\n\nfunc main() { _ = syscall.Kill(1, 0); differs() }\n",
		"on_linux.go":   "package main\n\nfunc differs() {}\n",
		"on_darwin.go":  "package main\n\nfunc differs() { var n int = \"text\"; _ = n }\n",
		"on_windows.go": "package main\n\nfunc differs() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(program, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for system, want := range map[string]string{
		"linux/arm64":   "",
		"darwin/arm64":  `on_darwin.go:3:30: cannot use "text"`,
		"windows/amd64": "undefined: syscall.Kill",
		"linux/abacus":  "unknown processor",
		"abacus/amd64":  "undefined: goos",
	} {
		var out strings.Builder
		err := checkCross(t.Context(), dir, []string{system}, &out)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", system, err, want)
		}
	}
	if err := checkCross(t.Context(), dir, nil, &strings.Builder{}); err == nil {
		t.Error("no system: got no error")
	}
}
