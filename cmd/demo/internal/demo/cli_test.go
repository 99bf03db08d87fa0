package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestWrongUsage(t *testing.T) {
	for _, tt := range []struct {
		args string
		want string
	}{
		{"nonsense", `unknown command "nonsense"`},
		{"--bogus", "unknown flag: --bogus"},
		{"extra --json", `unknown command "extra"`},
		{"--json extra", `unknown command "extra"`},
		{"--partitions 0", "--partitions: got 0, want 1 to 65536"},
		{"--partitions 65537", "--partitions: got 65537"},
		{"--partitions -1", "-partitions"},
		{"--processors 0", "--processors: got 0"},
		{"--processors x", `"x"`},
		{"--commits -1", "--commits: got -1"},
		{"replay", "--db is missing"},
		{"replay --db", "flag needs an argument: --db"},
		{"replay --db x y", `unexpected argument "y"`},
		{"load --events 0", "--events: got 0"},
		{"load --events 99999999999999999999", "-events"},
		{"load --workspaces 0", "--workspaces: got 0"},
		{"load --partitions 70000", "--partitions: got 70000"},
		{"load --clients 0", "--clients: got 0"},
		{"load --clients 10001", "--clients: got 10001"},
		{"load --body -1", "--body: got -1"},
		{"load --json=perhaps", "-json"},
		{"outbox --kills -1", "--kills: got -1"},
		{"outbox --batch 0", "--batch: got 0"},
		{"outbox --partitions 0", "--partitions: got 0"},
		{"outbox extra", `unexpected argument "extra"`},
	} {
		o := runDemo(t, strings.Fields(tt.args)...)
		o.fails(t, exitUsage, tt.want, "(see demo", "--help)")
		if o.stdout != "" {
			t.Errorf("%s: got stdout %q", tt.args, o.stdout)
		}
	}
}

// Each command helps, within 80 columns, and says what each of its flags is for; what the program alone starts is not told.
func TestHelp(t *testing.T) {
	root := command()
	for _, c := range append(root.Commands(), root) {
		help := runDemo(t, append(strings.Fields(c.CommandPath())[1:], "--help")...).fine(t).stdout
		if c.Short == "" || strings.Contains(help, ChildCommand+" ") != (c.Name() == ChildCommand) {
			t.Errorf("%s: got:\n%s", c.CommandPath(), help)
		}
		for line := range strings.Lines(help) {
			if len(line) > 81 {
				t.Errorf("%s: got a line of %d characters: %s", c.CommandPath(), len(line), line)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || f.Hidden == strings.Contains(help, "  --"+f.Name+" ") {
				t.Errorf("%s: --%s has no help, or should have none", c.CommandPath(), f.Name)
			}
		})
	}
}

// damage is one way to make a store unusable.
type damage struct {
	name string
	// do changes the store in a directory, and returns another directory if that is
	// to be used.
	do func(t *testing.T, dir string) string
	// want is in the error.
	want string
	// replayOnly says that other commands can do with it.
	replayOnly bool
}

func damages() []damage {
	return []damage{
		{"missing", func(t *testing.T, _ string) string { return filepath.Join(t.TempDir(), "nowhere") }, "no store there", true},
		{"a file", func(_ *testing.T, dir string) string { return filepath.Join(dir, "log.db") }, "not a directory", false},
		{"text", func(t *testing.T, dir string) string { return overwrite(t, dir, "log.db", []byte("hello\n")) }, "not a file of this store", false},
		{"zeros", func(t *testing.T, dir string) string { return overwrite(t, dir, "state.db", make([]byte, 1<<20)) }, "not a file of this store", false},
		{"short", func(t *testing.T, dir string) string {
			return overwrite(t, dir, "log.db", read(t, dir, "log.db")[:5*os.Getpagesize()])
		}, "log.db", false},
		{"header", func(t *testing.T, dir string) string {
			return changeHeader(t, dir, 12)
		}, "bucket header, header", false},
		{"format", func(t *testing.T, dir string) string {
			return changeHeader(t, dir, 9)
		}, "unknown format version", false},
		{"state of another store", func(t *testing.T, dir string) string {
			return overwrite(t, dir, "state.db", read(t, storeOf(t), "state.db"))
		}, "not a file of this store", false},
		{"no log", func(t *testing.T, dir string) string {
			check(t, os.Remove(filepath.Join(dir, "log.db")))
			return dir
		}, "log.db", false},
		{"no state", func(t *testing.T, dir string) string {
			check(t, os.Remove(filepath.Join(dir, "state.db")))
			return dir
		}, "state.db", true},
		{"locked", func(t *testing.T, dir string) string {
			hold(t, dir)
			return dir
		}, "in use by this process", false},
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	check(t, err)
	return content
}

// changeHeader changes a byte of the header of log.db, in each page that has it:
// those that bbolt does not use any more have one, too.
func changeHeader(t *testing.T, dir string, at int) string {
	t.Helper()
	magic := []byte("partita\n")
	pieces := bytes.Split(read(t, dir, "log.db"), magic)
	for _, piece := range pieces[1:] {
		piece[at-len(magic)] ^= 0x10
	}
	return overwrite(t, dir, "log.db", bytes.Join(pieces, magic))
}

func overwrite(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	check(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	return dir
}

// Whatever is wrong with a store: one clear line, and nothing is changed.
func TestUnusableStores(t *testing.T) {
	for _, d := range damages() {
		t.Run(d.name, func(t *testing.T) {
			dir := d.do(t, storeOf(t))
			before := files(t, dir)
			commands := []string{"replay", "replay --from-start", "load --events 10"}
			if d.replayOnly {
				commands = commands[:2]
			}
			for _, command := range commands {
				o := runDemo(t, append(strings.Fields(command), "--db", dir)...)
				o.fails(t, exitFailed, d.want, dir)
				if o.stdout != "" {
					t.Errorf("%s: got stdout %q", command, o.stdout)
				}
				untouched(t, dir, before)
			}
		})
	}
}

// A store of another application, or cut differently, is refused.
func TestOtherStores(t *testing.T) {
	dir := storeOf(t)
	before := files(t, dir)
	runDemo(t, "--db", dir).fails(t, exitFailed, dir, `"commits"`, `"load"`)
	runDemo(t, "load", "--db", dir, "--partitions", "4").fails(t, exitFailed, dir, "got 4, the store has 8")
	untouched(t, dir, before)
}

// A result that cannot be written is a failure.
func TestFullOutput(t *testing.T) {
	dir := storeOf(t)
	for _, args := range [][]string{{"help"}, {"replay", "--db", dir}, {"replay", "--db", dir, "--json"}} {
		var stderr bytes.Buffer
		status := Run(limit(t), args, strings.NewReader(""), fullWriter{}, &stderr)
		outcome{status: status, stderr: strings.TrimPrefix(stderr.String(), progressOf(stderr.String()))}.fails(t, exitFailed, "full")
	}
}

// progressOf returns what was written before the error.
func progressOf(stderr string) string { return stderr[:max(strings.Index(stderr, "demo: "), 0)] }

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errors.New("disk is full") }

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, args := range []string{"--commits 100", "load --events 10", "outbox --commits 100", "replay --db " + storeOf(t)} {
		t.Setenv("TMPDIR", t.TempDir())
		var stdout, stderr bytes.Buffer
		status := Run(ctx, strings.Fields(args), strings.NewReader(""), &stdout, &stderr)
		outcome{status: status, stderr: stderr.String()}.fails(t, exitFailed, "interrupted")
		untouched(t, os.TempDir(), nil)
	}
}

func TestNumberJSON(t *testing.T) {
	for n, want := range map[number]string{
		0: "0", 1<<53 - 1: "9007199254740991", 1 << 53: `"9007199254740992"`, 1<<64 - 1: `"18446744073709551615"`,
	} {
		if got, err := json.Marshal(n); err != nil || string(got) != want {
			t.Errorf("%d: got %s, %v, want %s", uint64(n), got, err, want)
		}
	}
}
