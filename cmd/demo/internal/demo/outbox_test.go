package demo

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The outbox, with children that are really killed: no line is missing, at most a batch of
// each log is repeated for a kill, and each copy is there once.
func TestOutbox(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	const commits = 2000
	args := []string{"outbox", "--commits", "2000", "--batch", "10", "--kills", "2", "--partitions", "4", "--db", dir}
	d := runDemo(t, append(args, "--json")...).fine(t).json(t)
	d.want(t, true, "ok")
	d.want(t, true, "kept")
	d.want(t, commits, "commits")
	d.want(t, 0, "file", "missing")
	d.want(t, 0, "file", "wrong")
	d.want(t, commits, "copies", "events")
	d.want(t, 0, "copies", "missing")
	d.want(t, 0, "copies", "repeated")
	d.want(t, 2*commits, "check", "events")
	lines, repeated := d.integer(t, "file", "lines"), d.integer(t, "file", "repeated")
	if lines != commits+repeated || repeated > 2*4*10 {
		t.Errorf("got %d lines, %d of them repeated, want %d and at most a batch of each log for a kill", lines, repeated, commits)
	}
	if got := bytes.Count(read(t, dir, outboxFile), []byte("\n")); int64(got) != lines {
		t.Errorf("got %d lines in the file, want %d", got, lines)
	}
	d.want(t, true, "processes", 0, "killed")
	d.want(t, 0, "processes", 0, "repeated")
	before := files(t, dir)
	runDemo(t, args...).fails(t, exitFailed, dir, "wants a new store")
	untouched(t, dir, before)
}

func TestOutboxAsText(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	o := runDemo(t, "outbox", "--commits", "300", "--kills", "0").fine(t)
	untouched(t, os.TempDir(), nil)
	if o.stderr != "" {
		t.Errorf("got stderr %q", o.stderr)
	}
	for _, text := range []string{"of 300 lines 0 are missing", "0 lines were repeated", "of 300 copies 0 are missing and 0 repeated", "itself"} {
		if !strings.Contains(o.stdout, text) {
			t.Errorf("got no %q in:\n%s", text, o.stdout)
		}
	}
}

// An interrupt ends each step cleanly, and leaves neither child nor store.
func TestOutboxInterrupted(t *testing.T) {
	for _, at := range []string{"1. ", "2. ", "is dead", "3. ", "4. "} {
		t.Run(at, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			ctx, cancel := context.WithCancel(limit(t))
			defer cancel()
			var stderr bytes.Buffer
			args := []string{"outbox", "--commits", "500", "--kills", "1", "--batch", "5"}
			status := Run(ctx, args, strings.NewReader(""), &cancelAt{text: at, cancel: cancel}, &stderr)
			outcome{status: status, stderr: stderr.String()}.fails(t, exitFailed, "interrupted")
			untouched(t, os.TempDir(), nil)
		})
	}
}

// Half a line is cut off: its batch is delivered again.
func TestOpenOutbox(t *testing.T) {
	dir := t.TempDir()
	overwrite(t, dir, outboxFile, []byte("0 1 aa\n0 2 b"))
	f, err := openOutbox(dir)
	check(t, err)
	_, err = f.WriteString("0 2 bb\n")
	check(t, err)
	check(t, f.Close())
	if got := string(read(t, dir, outboxFile)); got != "0 1 aa\n0 2 bb\n" {
		t.Errorf("got %q", got)
	}
}

// Whatever is wrong with the lines is counted.
func TestLineCheck(t *testing.T) {
	right := "0 1 aa\n1 1 bb\n0 2 cc\n"
	for name, tt := range map[string]struct {
		killed, after string // the lines of a process that was killed, and of the next one
		want          fileResult
	}{
		"all":                {right, "", fileResult{Lines: 3}},
		"repeated":           {right, "0 2 cc\n1 1 bb\n", fileResult{Lines: 5, Repeated: 2}},
		"repeated too often": {right, "0 1 aa\n0 2 cc\n", fileResult{Lines: 5, Repeated: 2, TooOften: 1}},
		"without a kill":     {right + "0 2 cc\n", "", fileResult{Lines: 4, Repeated: 1, TooOften: 1}},
		"missing":            {"0 1 aa\n1 1 bb\n", "", fileResult{Lines: 2, Missing: 1}},
		"overtaken":          {"0 2 cc\n1 1 bb\n", "", fileResult{Lines: 2, OutOfOrder: 1, Missing: 1}},
		"another commit":     {"0 1 aa\n1 1 bb\n0 2 dd\n", "", fileResult{Lines: 3, Wrong: 1, Missing: 1}},
		"unknown":            {right, "0 3 ee\n", fileResult{Lines: 4, Wrong: 1}},
		"half a line":        {right, "0 2", fileResult{Lines: 4, Wrong: 1}},
	} {
		c := newLineCheck(authored{0: {1: "aa", 2: "cc"}, 1: {1: "bb"}})
		for i, text := range []string{tt.killed, tt.after} {
			c.begin()
			for line := range strings.Lines(text) {
				c.add(line)
			}
			c.end(uint64(i)) // a batch of 1
		}
		if got := *c.result(); got != tt.want || got.right() != (got.Missing+got.Wrong+got.OutOfOrder+got.TooOften == 0) {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}
