package command

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/bench/internal/report"
	"github.com/partita-go/partita/bench/internal/rows"
	"github.com/partita-go/partita/bench/internal/trio"
)

// TestMain lets the test binary stand for the program where it starts itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == rowCommand || os.Args[1] == trio.Command || servers[os.Args[1]] != nil) {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		status := Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		stop()
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// bench runs the program.
func bench(t *testing.T, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	status = Run(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return out.String(), errs.String(), status
}

// measured runs rows and returns their lines. They are measured for longer if the disk
// stalled for all of the time.
func measured(t *testing.T, args ...string) string {
	t.Helper()
	args = append([]string{args[0], "-json", "-warmup", "50ms", "-workspaces", "50"}, args[1:]...)
	for window := 200 * time.Millisecond; ; window *= 5 {
		lines, errs, status := bench(t, "", append(args, "-time", window.String())...)
		if status == 0 {
			return lines
		}
		if window > 20*time.Second || !strings.Contains(errs, "no call ended well") {
			t.Fatalf("got status %d\n%s\n%s", status, lines, errs)
		}
	}
}

// The rows that need nothing installed.
const own = `^(limit/callers=8|bbolt-update|nats-jetstream|sqlite)$`

func TestRunAndTable(t *testing.T) {
	dir := t.TempDir()
	lines := measured(t, "run", "-rows", own, "-dir", dir, "-allow-missing")
	results, err := report.ReadLines(strings.NewReader(lines))
	if err != nil || len(results) != 4 {
		t.Fatalf("got %d results, %v, want 4", len(results), err)
	}
	for _, r := range results {
		if r.Repeat != 0 || r.Unavailable == "" && (r.Events == 0 || r.Check == "" || r.Note == "" || len(r.Files) == 0) {
			t.Errorf("got %+v", r)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("got %v left behind, %v", left, err)
	}
	text, _, status := bench(t, lines, "table")
	if status != 0 || !strings.Contains(text, "bbolt-update") {
		t.Errorf("table: got status %d\n%s", status, text)
	}
}

// besideServers runs rows of which some need servers that may not be installed, and returns the results of the others
// and of those whose servers are.
func besideServers(t *testing.T, specs []measure.Spec, args ...string) []*report.Result {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // a server may run as another account
		t.Fatal(err)
	}
	lines := measured(t, append(args, "-dir", dir, "-rounds", "0", "-allow-missing")...)
	results, err := report.ReadLines(strings.NewReader(lines))
	if err != nil || len(results) != len(specs) {
		t.Fatalf("got %d results, %v, want %d", len(results), err, len(specs))
	}
	var available []*report.Result
	for i := range results {
		if r := &results[i]; r.Unavailable == "" {
			available = append(available, r)
		} else {
			t.Logf("%s: %s", r.Row, r.Unavailable)
		}
	}
	return available
}

// The rows that are read and need nothing installed; and those of PostgreSQL, where a
// server is installed.
func TestReaders(t *testing.T) {
	for _, r := range besideServers(t, slices.Concat(rows.ReadingGroups()...), "readers") {
		if !r.Right() || r.Reading == nil || len(r.Reading.Readers) != 16 {
			t.Errorf("got %+v", r)
			continue
		}
		for reader, got := range r.Reading.Readers {
			if got.Seen+got.Skipped != r.Acknowledged || got.Seen == 0 {
				t.Errorf("%s: reader %d: got %+v, want %d events", r.Row, reader, got, r.Acknowledged)
			}
			if maySkip := strings.HasSuffix(r.Row, "postgres-identity"); !maySkip && got.Skipped > 0 || got.Twice > 0 || got.OutOfOrder > 0 {
				t.Errorf("%s: reader %d: got %+v, want each event once and in order", r.Row, reader, got)
			}
		}
	}
}

// The row of partita; and those of PostgreSQL, where a server is installed.
func TestMidnight(t *testing.T) {
	for _, r := range besideServers(t, slices.Concat(rows.MidnightGroups()...), "midnight", "-warmup", "2s") {
		if !r.Right() || r.Numbering == nil || r.Numbering.Days < 1 {
			t.Errorf("got %+v, want at least one midnight", r)
			continue
		}
		if resets := strings.HasSuffix(r.Row, "reset"); !resets && (r.Numbering.Doubled > 0 || r.Numbering.Missing > 0) || resets && r.Numbering.Missing == 0 {
			t.Errorf("%s: got %+v", r.Row, *r.Numbering)
		}
	}
}

// Rows of partita have profiles, and rows that are compared take turns.
func TestRepeatAndProfiles(t *testing.T) {
	dir := t.TempDir()
	lines := measured(t, "run", "-rows", "^(limit/callers=8|partita/callers=8)$", "-repeat", "2", "-rounds", "1", "-cpuprofile", dir, "-dir", dir)
	results, err := report.ReadLines(strings.NewReader(lines))
	if err != nil || len(results) != 4 {
		t.Fatalf("got %d results, %v, want 4\n%s", len(results), err, lines)
	}
	for i, want := range []string{"limit/callers=8", "partita/callers=8", "limit/callers=8", "partita/callers=8"} {
		r := &results[i]
		if r.Row != want || r.Repeat != i/2 || (r.Profile != "") != (i%2 == 1) || (r.RoundsWanted == 1) != (i%2 == 1) {
			t.Errorf("%d: got %s, repeat %d, %d rounds wanted, profile %q", i, r.Row, r.Repeat, r.RoundsWanted, r.Profile)
		}
		if r.Profile == "" {
			continue
		}
		if file, err := os.Stat(r.Profile); err != nil || file.Size() == 0 {
			t.Errorf("%d: profile: got %v, %v", i, file, err)
		}
	}
}

func TestWrongUse(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"walk"}, `got command "walk"`},
		{[]string{"run", "fast"}, `got argument "fast"`},
		{[]string{"-rows", "nothing"}, "no row that matches nothing"},
		{[]string{"-rows", "^read/"}, "no row that matches ^read/"},
		{[]string{"readers", "-rows", "^partita"}, "no row that matches ^partita"},
		{[]string{"-rows", "("}, "-rows"},
		{[]string{"-time", "0s"}, "-time: got 0s"},
		{[]string{"-warmup", "-1s"}, "-warmup: got -1s"},
		{[]string{"-repeat", "0"}, "-repeat: got 0"},
		{[]string{"-workspaces", "0"}, "-workspaces: got 0"},
		{[]string{"-memory", "-1"}, "-memory: got -1"},
		{[]string{"-rows", "limit", "-dir", "missing/directory"}, "missing/directory"},
		{[]string{"table"}, "no lines"},
		{[]string{"table", "-fast"}, "-fast"},
		{[]string{"plot"}, "no lines"},
		{[]string{"cluster", "-repeat", "0"}, "-repeat: got 0"},
		{[]string{"cluster", "-only", "("}, "-only"},
		{[]string{"cluster", "-only", "nothing"}, "nothing that matches nothing"},
		{[]string{trio.Command}, "got 0 arguments"},
		{[]string{rowCommand}, "got 0 arguments"},
		{[]string{rowCommand, "walk", t.TempDir()}, `got "walk"`},
	} {
		out, errs, status := bench(t, "", tt.args...)
		if status != 1 || !strings.Contains(errs, tt.want) || out != "" {
			t.Errorf("%q: got status %d, %q, %q, want 1 and %q", tt.args, status, out, errs, tt.want)
		}
	}
}

func TestHelpAndList(t *testing.T) {
	_, errs, status := bench(t, "", "help")
	if status != 0 || !strings.Contains(errs, "-allow-missing") {
		t.Errorf("help: got status %d\n%s", status, errs)
	}
	out, _, status := bench(t, "", "list")
	if status != 0 || !strings.Contains(out, "limit/callers=256\n") {
		t.Errorf("list: got status %d\n%s", status, out)
	}
}
