package command

import (
	"os"
	"strings"
	"testing"
)

// What needs no peers, for a moment: whether the bars are held says nothing then.
func TestCluster(t *testing.T) {
	dir := t.TempDir()
	out, errs, _ := bench(t, "", "cluster", "-dir", dir, "-repeat", "1", "-time", "300ms", "-warmup", "100ms", "-handovers", "1",
		"-steady", "300ms", "-behind", "3000", "-only", "alone|partita|log|steady|behind")
	for line := range strings.Lines(errs) {
		if strings.HasPrefix(line, "bench:") && !strings.HasPrefix(line, "bench: bars:") {
			t.Errorf("got %s", line)
		}
	}
	for _, figure := range []string{
		"alone/many/rate", "alone/one/p50", "partita/many/rate", "partita/one/p50", "read/rate", "read/p50", "hand-over/pause",
		"partita/kill/pause", "log/many/rate", "steady/elections", "behind/writing", "behind/catching-up", "behind/heap",
	} {
		if !strings.Contains(out, figure+" ") {
			t.Errorf("%s is missing", figure)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("got %v left behind, %v", left, err)
	}
	if t.Failed() {
		t.Logf("%s\n%s", out, errs)
	}
}
