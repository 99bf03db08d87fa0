//go:build !nopeers

package rows

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFirstLine(t *testing.T) {
	line := new(firstLine)
	for _, step := range []struct{ written, want string }{{"nats://", ""}, {"here", ""}, {"\nmore\n", "nats://here"}} {
		if _, err := line.Write([]byte(step.written)); err != nil {
			t.Fatal(err)
		}
		if got := line.get(); got != step.want {
			t.Errorf("after %q: got %q, want %q", step.written, got, step.want)
		}
	}
}

func TestReachable(t *testing.T) {
	closed := filepath.Join(t.TempDir(), "closed")
	below := filepath.Join(closed, "data")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := reachable(below); err == nil {
		t.Error("below a directory that others cannot pass: got no error")
	}
}
