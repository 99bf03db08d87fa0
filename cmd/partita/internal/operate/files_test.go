package operate

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/storage/bolt"
)

// A copy tells the sizes of each file that it has, that of the subscriptions too.
func TestCopiesTellEachFile(t *testing.T) {
	dir := newStore(t)
	subscribe(t, dir)
	for _, args := range [][]string{{"backup", "--db"}, {"compact", "--db"}, {"restore", "--from"}} {
		to := filepath.Join(t.TempDir(), "to")
		files, _ := run(t, append(args, dir, "--to", to, "--json")...).has(t, exitFine).json(t)["files"].([]any)
		if len(files) != 3 {
			t.Fatalf("%s: got %v, want three files", args[0], files)
		}
		last, _ := files[2].(map[string]any)
		if last["name"] != "subscriptions.db" || last["from_bytes"] == 0.0 || last["to_bytes"] == 0.0 {
			t.Errorf("%s: got %v", args[0], last)
		}
	}
}

// A write-ahead log has no pages, and so not 0 of them.
func TestInspectTellsNoPagesOfWAL(t *testing.T) {
	var out bytes.Buffer
	r := newInspectResult("x", &bolt.Inspection{
		Log: bolt.FileInspection{Name: "log.db", PageSize: 4096}, State: bolt.FileInspection{Name: "state.db", PageSize: 4096},
		WAL: &bolt.WALInspection{Name: "log.wal", Format: 1, Size: 100},
	})
	r.text(console.New(cli.Streams{Out: &out, Err: &out}, false))
	if !regexp.MustCompile(`(?m)^ log\.wal +1 +100 B$`).MatchString(out.String()) {
		t.Errorf("got:\n%s", out.String())
	}
	if !regexp.MustCompile(`(?m)^ log\.db .* 0 +0$`).MatchString(out.String()) {
		t.Errorf("got:\n%s", out.String())
	}
}

// Both files that are damaged are told, and what was not looked at.
func TestVerifyTellsEachFile(t *testing.T) {
	dir := newStore(t)
	for _, name := range []string{"log.db", "state.db"} {
		spoilMetaPage(t, filepath.Join(dir, name))
	}
	o := run(t, "verify", "--db", dir).has(t, exitFault)
	for _, want := range []string{dir + "/log.db, meta page 0", dir + "/state.db, meta page 0", "not looked at: what stands in log.db\n", "2 faults"} {
		if !strings.Contains(o.stdout+o.stderr, want) {
			t.Errorf("want %q in:\n%s%s", want, o.stdout, o.stderr)
		}
	}
	d := run(t, "verify", "--db", dir, "--json").has(t, exitFault).json(t)
	if unread, _ := d["unread"].([]any); d["fault_count"] != 2.0 || len(unread) != 2 {
		t.Errorf("got %v", d)
	}
}

// What a directory is called cannot steer the terminal.
func TestVerifyIsPlain(t *testing.T) {
	dir := filepath.Join(filepath.Dir(newStore(t)), "store\x1b[2J")
	check(t, os.Rename(filepath.Join(filepath.Dir(dir), "store"), dir))
	remove(t, dir, "state.db")
	o := run(t, "verify", "--db", dir).has(t, exitFault)
	if text := o.stdout + o.stderr; strings.Contains(text, "\x1b") || strings.Count(text, "store?[2J") != 2 {
		t.Errorf("got %q", text)
	}
}
