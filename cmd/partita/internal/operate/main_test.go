package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// holdCommand makes the test's binary a process that has a store open until its stdin
// ends.
const holdCommand = "hold"

// programCommand makes the test's binary the program, with the arguments behind it.
const programCommand = "program"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == programCommand {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		status := Run(ctx, os.Args[2:], os.Stdin, os.Stdout, os.Stderr)
		stop()
		os.Exit(status)
	}
	if len(os.Args) > 2 && os.Args[1] == holdCommand {
		os.Exit(hold(os.Args[2]))
	}
	goleak.VerifyTestMain(m)
}

func hold(dir string) int {
	s, err := bolt.OpenExisting(context.Background(), dir, bolt.Options{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Close(context.Background()); err != nil {
		return 1
	}
	return 0
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
	// progress are the lines of stderr that tell how far it has come; stderr has the others.
	progress string
}

// progressLine is a line of a phase, the last one or one on a slow machine.
var progressLine = regexp.MustCompile(`(?m)^[a-z., 0-9]+: [0-9,]+(?: of [0-9,]+)?(?: in \S+|, \d+%)?, \S+/s(?:, phase ETA \S+)?\n`)

func run(t testing.TB, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := Run(limit(t), args, strings.NewReader(""), &stdout, &stderr)
	return outcome{
		status: status, stdout: stdout.String(), stderr: progressLine.ReplaceAllString(stderr.String(), ""),
		progress: strings.Join(progressLine.FindAllString(stderr.String(), -1), ""),
	}
}

func (o outcome) has(t testing.TB, status int) outcome {
	t.Helper()
	if o.status != status {
		t.Fatalf("got status %d, want %d, stderr %q, stdout:\n%s", o.status, status, o.stderr, o.stdout)
	}
	return o
}

// fails checks the status, and that there is one line of error with these texts.
func (o outcome) fails(t testing.TB, status int, texts ...string) {
	t.Helper()
	o.has(t, status)
	if strings.Count(o.stderr, "\n") != 1 || !strings.HasSuffix(o.stderr, "\n") || !strings.HasPrefix(o.stderr, "partita: ") {
		t.Errorf("got stderr %q, want one line", o.stderr)
	}
	for _, text := range texts {
		if !strings.Contains(o.stderr, text) {
			t.Errorf("got stderr %q, want %q in it", o.stderr, text)
		}
	}
}

// json decodes the one document on stdout.
func (o outcome) json(t testing.TB) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(o.stdout))
	var d map[string]any
	if err := decoder.Decode(&d); err != nil {
		t.Fatalf("%v in %s", err, o.stdout)
	}
	if decoder.More() {
		t.Fatalf("got more than one document: %s", o.stdout)
	}
	return d
}

// contents returns all files of a directory.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := bytesOf(t, dir)
	for name, content := range all {
		info, err := os.Stat(filepath.Join(dir, name))
		check(t, err)
		all[name] = info.ModTime().String() + content
	}
	return all
}

// bytesOf returns what stands in the files of a directory.
func bytesOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	all := make(map[string]string)
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		check(t, err)
		all[e.Name()] = string(content)
	}
	return all
}

// untouched fails the test if a directory is not as it was.
func untouched(t testing.TB, dir string, before map[string]string) {
	t.Helper()
	same(t, before, contents(t, dir))
}

// same fails the test if the files of a directory differ.
func same(t testing.TB, before, after map[string]string) {
	t.Helper()
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

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	shop    messages.WSKind = 1
	invoice messages.SeqID  = 16
	// bigWorkspace is not exact as a floating point number.
	bigWorkspace messages.WSID = 1<<63 + 1
)

func descriptor() messages.Descriptor {
	return messages.Descriptor{Application: "shops", Partitions: 2, Kinds: []messages.Kind{{
		ID: shop, Name: "shop", Sequences: []messages.Sequence{{ID: invoice, Name: "Invoice", Initial: 1}},
	}}}
}

// event makes the nth event of a workspace whose events are all that its partition has.
func event(ws messages.WSID, n int) messages.Event {
	number := messages.Number(n)
	return messages.Event{
		Kind: messages.EventBusiness, Epoch: 1, Partition: messages.PartitionOf(ws, 2), PLogOffset: messages.PLogOffset(n),
		Workspace: ws, WorkspaceKind: shop, WLogOffset: messages.WLogOffset(n), RegisteredAt: messages.Timestamp(1_700_000_000_000_000 + n),
		Numbers: []messages.SequenceNumber{{Seq: invoice, Number: number}}, Body: fmt.Appendf(nil, "invoice %d", n),
		Records: []messages.Record{{ID: messages.RecordID{Seq: invoice, Number: number}, New: true, Data: fmt.Appendf(nil, "row %d", n)}},
	}
}

// newStore makes a store: the big workspace has 2 events, workspace 4 has 3 behind them, the
// last of them not in the projections yet.
func newStore(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := bolt.Open(limit(t), dir, descriptor(), bolt.Options{Create: true})
	check(t, err)
	for _, w := range []struct {
		ws     messages.WSID
		events int
	}{{bigWorkspace, 2}, {4, 3}} {
		ws, p := w.ws, messages.PartitionOf(w.ws, 2)
		_, err := s.TakeEpoch(limit(t), p)
		check(t, err)
		for n := 1; n <= w.events; n++ {
			e := event(ws, n)
			if ws == 4 && n == 2 {
				e.DedupID, e.Body, e.Trace = messages.DedupID{0xab}, []byte{0xff, 0}, 0x0123456789abcdef
			}
			check(t, s.Append(limit(t), storage.Batch{Partition: p, Epoch: 1, Events: []messages.Event{e}}))
		}
		check(t, s.Flush(limit(t), storage.Flush{
			Partition: p, Epoch: 1, Expected: 1, Checkpoint: 3,
			Numbers: []storage.WorkspaceNumbers{{Workspace: ws, Kind: shop, Numbers: []messages.SequenceNumber{{Seq: 1, Number: 2}, {Seq: invoice, Number: 2}}}},
		}))
	}
	check(t, s.Close(limit(t)))
	return dir
}
