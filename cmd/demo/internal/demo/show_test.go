package demo

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// The whole show, with a child that is really killed; then again over the same
// store, with more commits, and with nothing left to do.
func TestShow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for _, step := range []struct{ commits, found, years, days int }{{300, 0, 12, 86}, {401, 300, 14, 116}} {
		d := runDemo(t, "--json", "--commits", strconv.Itoa(step.commits), "--db", dir).fine(t).json(t)
		left := step.commits - step.found
		d.want(t, true, "ok")
		d.want(t, true, "kept")
		d.want(t, step.commits, "commits")
		d.want(t, step.commits, "history", "equal")
		d.want(t, 0, "history", "wrong")
		d.want(t, step.commits, "all", "commits")
		d.want(t, step.years, "all", "years")
		d.want(t, step.days, "all", "days")
		d.want(t, "2011-04-26/23", "busiest", 0, "fullest_day")
		d.want(t, 0, "crash", "lost")
		d.want(t, 0, "check", "fault_count")
		d.want(t, step.commits, "check", "events")
		d.want(t, step.commits, "check", "records")
		d.want(t, 0, "clean_start", "replayed")
		d.want(t, step.commits, "clean_start", "events")
		acknowledged, inLog := d.integer(t, "crash", "acknowledged"), d.integer(t, "crash", "in_log")
		if acknowledged < int64(left/2) || inLog < acknowledged || inLog > int64(left) {
			t.Errorf("got %d acknowledged, %d in the log of %d", acknowledged, inLog, left)
		}
		if got := d.integer(t, "finish", "commits") + inLog; got != int64(left) {
			t.Errorf("got %d commits before the crash and after, want %d", got, left)
		}
		replayed, authors := int64(0), int64(0)
		for i := range 8 {
			replayed += d.integer(t, "partitions", i, "replayed")
			authors += d.integer(t, "partitions", i, "authors")
		}
		if want := d.integer(t, "crash", "recovery", "replayed"); replayed != want {
			t.Errorf("got %d replayed in all partitions, want %d", replayed, want)
		}
		if want := d.integer(t, "authors"); authors != want {
			t.Errorf("got %d authors in all partitions, want %d", authors, want)
		}
	}
	o := runDemo(t, "--commits", "401", "--db", dir).fine(t)
	if !strings.Contains(o.stdout, "nothing to run") || o.stderr != "" {
		t.Errorf("got stderr %q, stdout:\n%s", o.stderr, o.stdout)
	}
	replayShown(t, dir)
}

// replayShown replays the store of a show with 401 commits.
func replayShown(t *testing.T, dir string) {
	before := files(t, dir)
	d := runDemo(t, "replay", "--db", dir, "--json").fine(t).json(t)
	d.want(t, 401, "events")
	d.want(t, 0, "replayed")
	d = runDemo(t, "replay", "--db", dir, "--json", "--from-start").fine(t).json(t)
	d.want(t, true, "ok")
	d.want(t, 401, "replayed")
	o := runDemo(t, "replay", "--db", dir, "--from-start").fine(t)
	if !strings.Contains(o.stdout, "no number was given twice") {
		t.Errorf("got no verdict:\n%s", o.stdout)
	}
	untouched(t, dir, before)
}

// Text for a pipe: plain, not too wide, and the temporary store is removed.
func TestShowAsText(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("COLUMNS", "80")
	o := runDemo(t, "--commits", "200", "--processors", "3", "--partitions", "2").fine(t)
	untouched(t, os.TempDir(), nil)
	if o.stderr != "" {
		t.Errorf("got stderr %q", o.stderr)
	}
	for line := range strings.Lines(o.stdout) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n >= 80 && !strings.Contains(line, "/") {
			t.Errorf("got a line of %d characters: %s", n, line)
		}
		for _, r := range line {
			if !unicode.IsPrint(r) {
				t.Errorf("got %q in %q", r, line)
			}
		}
	}
	for _, text := range []string{"SIGKILL", "Events per partition", "after a clean stop", "2011-04-08/13", "of 100 commits that were acknowledged before SIGKILL, 0 are lost"} {
		if text = strings.TrimPrefix(text, "of 100 "); !strings.Contains(o.stdout, text) {
			t.Errorf("got no %q in:\n%s", text, o.stdout)
		}
	}
}

// cancelAt cancels when a text is written.
type cancelAt struct {
	text   string
	cancel context.CancelFunc
}

func (w *cancelAt) Write(b []byte) (int, error) {
	if strings.Contains(string(b), w.text) {
		w.cancel()
	}
	return len(b), nil
}

// An interrupt ends each step cleanly, and leaves neither child nor store.
func TestShowInterrupted(t *testing.T) {
	for _, at := range []string{"1. ", "is dead", "2. ", "3. ", "4. ", "Ready after"} {
		t.Run(at, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			ctx, cancel := context.WithCancel(limit(t))
			defer cancel()
			var stderr bytes.Buffer
			status := Run(ctx, []string{"--commits", "200"}, strings.NewReader(""), &cancelAt{text: at, cancel: cancel}, &stderr)
			outcome{status: status, stderr: stderr.String()}.fails(t, exitFailed, "interrupted")
			untouched(t, os.TempDir(), nil)
		})
	}
}

// An event that is damaged is named, and the exit status says so.
func TestReplayDamagedEvent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	runDemo(t, "--commits", "60", "--db", dir).fine(t)
	for c, err := range limited(1) {
		check(t, err)
		// Pages that bbolt does not use any more hold the event, too.
		body := encodeCommit(c, 1)
		damaged := bytes.Clone(body)
		damaged[0] ^= 1
		overwrite(t, dir, "log.db", bytes.ReplaceAll(read(t, dir, "log.db"), body, damaged))
	}
	before := files(t, dir)
	o := runDemo(t, "replay", "--db", dir, "--from-start")
	o.fails(t, exitFailed, dir, "violates its invariants")
	if !strings.Contains(o.stdout, "damage: partition ") {
		t.Errorf("got no damage in:\n%s", o.stdout)
	}
	untouched(t, dir, before)
}
