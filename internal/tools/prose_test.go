package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProse(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"as long as may be":      {strings.Repeat("ü", proseWidth) + "\nshort\n", ""},
		"too long":               {"short\n" + strings.Repeat("a", proseWidth+1), "2: got 121 characters"},
		"too long, in a table":   {"| " + strings.Repeat("a", proseWidth) + " |\n", "1: got 124 characters"},
		"too long, in a listing": {"```\n" + strings.Repeat("a", 200) + "\n```\n", "2: got 200 characters"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.md"), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err := checkProse(dir, &out)
		if (err != nil) != (c.want != "") || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: got %v, %q", name, err, out.String())
		}
	}
	if err := checkProse(t.TempDir(), &strings.Builder{}); err == nil {
		t.Error("a directory without Markdown passes")
	}
}
