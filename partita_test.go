package partita_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/partita-go/partita"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	shop     messages.WSKind = 1
	invoices messages.SeqID  = 16
)

func billing() partition.Application {
	return partition.Application{Descriptor: messages.Descriptor{
		Application: "billing", Partitions: 2,
		Kinds: []messages.Kind{{ID: shop, Name: "shop", Sequences: []messages.Sequence{{ID: invoices, Name: "Invoice", Initial: 1}}}},
	}}
}

func limit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// invoice writes an event with the next number.
func invoice(t *testing.T, app *partita.App) messages.Number {
	t.Helper()
	sequencer, err := app.SequencerOf(42)
	check(t, err)
	tx, err := sequencer.Start(limit(t), shop, 42)
	check(t, err)
	number, err := tx.Next(limit(t), invoices)
	check(t, err)
	check(t, tx.Commit(limit(t), nil))
	return number
}

// An application is opened, goes on where it stood, and leaves nothing behind.
func TestOpenClose(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for i := range messages.Number(3) {
		app, err := partita.Open(limit(t), dir, billing(), partita.Options{Create: i == 0})
		check(t, err)
		if got := invoice(t, app); got != i+1 {
			t.Errorf("got invoice %d, want %d", got, i+1)
		}
		_, err = partita.Open(limit(t), dir, billing(), partita.Options{Store: bolt.Options{LockTimeout: time.Millisecond}})
		if !errors.Is(err, storage.ErrLocked) {
			t.Errorf("twice: got %v, want %v", err, storage.ErrLocked)
		}
		check(t, app.Close(limit(t)))
		check(t, app.Close(limit(t)))
	}
}

// What cannot be opened leaves nothing open, and no file where nothing was: a wrong application makes no store.
func TestOpenRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if _, err := partita.Open(limit(t), dir, billing(), partita.Options{}); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v, want %v", err, storage.ErrNotFound)
	}
	wrong := billing()
	wrong.RequestLane = -1
	if _, err := partita.Open(limit(t), dir, wrong, partita.Options{Create: true}); !errors.Is(err, messages.ErrSettings) {
		t.Errorf("got %v, want %v", err, messages.ErrSettings)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that nothing was made", err)
	}
	app, err := partita.Open(limit(t), dir, billing(), partita.Options{Create: true})
	check(t, err)
	check(t, app.Close(limit(t)))
	app, err = partita.Open(limit(t), dir, billing(), partita.Options{})
	check(t, err)
	check(t, app.Close(limit(t)))
}

// A rollback: the older program goes on with what it knows, in a store that a newer one has extended.
func TestOpenAfterNewer(t *testing.T) {
	dir, newer := t.TempDir(), billing()
	newer.Kinds = append(newer.Kinds, messages.Kind{ID: 2, Name: "archive"})
	number := messages.Number(0)
	for i, run := range []struct {
		application partition.Application
		options     bolt.Options
		refused     error
	}{
		{billing(), bolt.Options{Create: true}, nil},
		{newer, bolt.Options{}, nil},
		{billing(), bolt.Options{}, messages.ErrDescriptor},
		{billing(), bolt.Options{AcceptNewer: true}, nil},
		{newer, bolt.Options{}, nil},
	} {
		app, err := partita.Open(limit(t), dir, run.application, partita.Options{Store: run.options})
		if run.refused != nil {
			if !errors.Is(err, run.refused) || !strings.Contains(err.Error(), `kind 2 "archive"`) {
				t.Errorf("%d: got %v, want %v", i, err, run.refused)
			}
			continue
		}
		check(t, err)
		if number++; invoice(t, app) != number {
			t.Errorf("%d: want invoice %d", i, number)
		}
		check(t, app.Close(limit(t)))
	}
}

// maxQuickstart is how many lines of code a user has to write, without blank ones and the list of imports.
const maxQuickstart = 25

// screen is within how many lines README has told of installing, the limits, and the program.
const screen = 60

// TestQuickstart runs the program that README begins with, as a user would: the first start makes the store, the next
// ones go on, and a wrong directory is refused. It prints what it says, and nothing else.
func TestQuickstart(t *testing.T) {
	program := quickstart(t)
	if lines := codeLines(program); lines > maxQuickstart {
		t.Errorf("got %d lines of code, want at most %d", lines, maxQuickstart)
	}
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "quickstart")
	check(t, os.WriteFile(source, []byte(program), 0o600))
	if out, err := exec.CommandContext(limit(t), "go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	work := t.TempDir()
	for _, run := range []struct {
		args, stdout, stderr string
		fails                bool
	}{
		{stderr: "Options.Create", fails: true},
		{args: "-create", stdout: "invoice 1\n"},
		{stdout: "invoice 2\n"},
		{args: "-create", stdout: "invoice 3\n"},
	} {
		var stdout, stderr bytes.Buffer
		c := exec.CommandContext(limit(t), binary, strings.Fields(run.args)...)
		c.Dir, c.Stdout, c.Stderr = work, &stdout, &stderr
		err := c.Run()
		if (err != nil) != run.fails || stdout.String() != run.stdout ||
			!strings.Contains(stderr.String(), run.stderr) || run.stderr == "" && stderr.Len() > 0 {
			t.Errorf("%q: got %v, %q, %q, want %q, %q", run.args, err, stdout.String(), stderr.String(), run.stdout, run.stderr)
		}
	}
}

// quickstart returns the first program in README.
func quickstart(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	check(t, err)
	before, program, found := strings.Cut(string(readme), "```go\npackage main\n")
	program, _, ended := strings.Cut(program, "```")
	if !found || !ended {
		t.Fatal("README has no program")
	}
	for _, want := range []string{"\ngo get ", "\n![", "\n**Limits**"} {
		if !strings.Contains(before, want) {
			t.Errorf("README has no %q before its program", want)
		}
	}
	if lines := strings.Count(before+program, "\n") + 3; lines > screen {
		t.Errorf("README's program ends in line %d, want %d at most", lines, screen)
	}
	return "package main\n" + program
}

func codeLines(program string) (n int) {
	importing := false
	for line := range strings.Lines(program) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "import ("):
			importing = true
		case importing:
			importing = line != ")"
		case line != "":
			n++
		}
	}
	return n
}
