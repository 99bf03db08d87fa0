package demo

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"unicode"
)

// FuzzArguments: whatever the arguments are, the program ends with one of its exit
// statuses and says in one line what is wrong. It is interrupted from the start, so
// that it gets no further than to what the arguments mean.
func FuzzArguments(f *testing.F) {
	for _, args := range []string{
		"", "help", "-h", "nonsense", "replay", "replay --db x --from-start", "load --events 0", "load --clients 10001 --body -1",
		"--partitions 0", "--processors 99999999999999999999", "load --json=maybe --events 1", "replay --db x --from-start --json",
		"outbox --kills 0", "outbox --batch -1 --json", "outbox --partitions 1 --processors 2 --kills 1 --batch 7",
	} {
		f.Add(strings.ReplaceAll(args, " ", "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\n")
		if strings.ContainsAny(text, "/\\~") || args[0] == ChildCommand || args[0] == OutboxChildCommand || strings.HasPrefix(args[0], "__complete") {
			return // it would be somebody's file; a child is started by the program alone, the other by a shell
		}
		t.Chdir(t.TempDir())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var stdout, stderr bytes.Buffer
		switch status := Run(ctx, args, strings.NewReader(""), &stdout, &stderr); status {
		case exitFine:
		case exitFailed, exitUsage:
			lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
			if last := lines[len(lines)-1]; !strings.HasPrefix(last, "demo: ") || strings.ContainsFunc(last, unicode.IsControl) {
				t.Errorf("%q: got status %d and stderr %q, want one line at its end", args, status, stderr.String())
			}
		default:
			t.Errorf("%q: got status %d", args, status)
		}
	})
}
