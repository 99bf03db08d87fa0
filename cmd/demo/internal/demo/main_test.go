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
	"time"

	"go.uber.org/goleak"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// TestMain makes the test's binary the child as well: the show starts its own
// program again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == ChildCommand || os.Args[1] == OutboxChildCommand) {
		os.Exit(Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// limit bounds what must not hang; it is far above what anything takes.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// outcome is what a run of the program left.
type outcome struct {
	status         int
	stdout, stderr string
}

func runDemo(t testing.TB, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := Run(limit(t), args, strings.NewReader(""), &stdout, &stderr)
	return outcome{status: status, stdout: stdout.String(), stderr: stderr.String()}
}

// fine fails the test unless all went well.
func (o outcome) fine(t testing.TB) outcome {
	t.Helper()
	if o.status != exitFine {
		t.Fatalf("got status %d, stderr %q, stdout:\n%s", o.status, o.stderr, o.stdout)
	}
	return o
}

// fails checks the status, and that there is one line of error with these texts.
func (o outcome) fails(t testing.TB, status int, texts ...string) {
	t.Helper()
	if o.status != status {
		t.Errorf("got status %d, want %d", o.status, status)
	}
	if strings.Count(o.stderr, "\n") != 1 || !strings.HasSuffix(o.stderr, "\n") || !strings.HasPrefix(o.stderr, "demo: ") {
		t.Errorf("got stderr %q, want one line", o.stderr)
	}
	for _, text := range texts {
		if !strings.Contains(o.stderr, text) {
			t.Errorf("got stderr %q, want %q in it", o.stderr, text)
		}
	}
}

// document is a JSON result; integers are kept as they are.
type document map[string]any

func (o outcome) json(t testing.TB) document {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(o.stdout))
	decoder.UseNumber()
	var d document
	if err := decoder.Decode(&d); err != nil {
		t.Fatalf("%v in %s", err, o.stdout)
	}
	if decoder.More() {
		t.Fatalf("got more than one document: %s", o.stdout)
	}
	return d
}

// at returns a value by its path: keys of objects and indexes of arrays.
func (d document) at(t testing.TB, path ...any) any {
	t.Helper()
	var value any = map[string]any(d)
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, ok := value.(map[string]any)
			if !ok {
				t.Fatalf("%v: got %T, want an object", path, value)
			}
			value = object[step]
		case int:
			array, ok := value.([]any)
			if !ok || step >= len(array) {
				t.Fatalf("%v: got %v, want an array with more elements", path, value)
			}
			value = array[step]
		}
	}
	return value
}

func (d document) integer(t testing.TB, path ...any) int64 {
	t.Helper()
	n, ok := d.at(t, path...).(json.Number)
	if !ok {
		t.Fatalf("%v: got %v, want a number", path, d.at(t, path...))
	}
	i, err := n.Int64()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func (d document) want(t testing.TB, want any, path ...any) {
	t.Helper()
	if n, ok := want.(int); ok {
		if got := d.integer(t, path...); got != int64(n) {
			t.Errorf("%v: got %d, want %d", path, got, n)
		}
		return
	}
	if got := d.at(t, path...); got != want {
		t.Errorf("%v: got %v, want %v", path, got, want)
	}
}

// files returns what a directory holds, and when each file was changed.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !strings.Contains(err.Error(), "not a directory") {
		t.Fatal(err)
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = info.ModTime().String() + string(content)
	}
	return all
}

// untouched fails the test if a directory is not as it was.
func untouched(t testing.TB, dir string, before map[string]string) {
	t.Helper()
	after := files(t, dir)
	for name, content := range before {
		if after[name] != content {
			t.Errorf("%s was changed or removed", name)
		}
		delete(after, name)
	}
	for name := range after {
		t.Errorf("%s was made", name)
	}
}

// storeOf returns a new store's directory; it is made of a little load.
func storeOf(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	runDemo(t, "load", "--events", "300", "--workspaces", "20", "--clients", "8", "--db", dir).fine(t)
	return dir
}

func openBolt(t testing.TB, dir string, d messages.Descriptor) *bolt.Store {
	t.Helper()
	store, err := bolt.Open(limit(t), dir, d, bolt.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, store.Close(context.Background())) })
	return store
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hold opens a store until the test ends.
func hold(t testing.TB, dir string) storage.Store { return openBolt(t, dir, loadDescriptor(8)) }
