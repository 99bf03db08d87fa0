package demo

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/partita-go/partita/cmd/demo/internal/history"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/partition/partitiontest"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

func TestCommitEncoding(t *testing.T) {
	n := messages.WLogOffset(0)
	for c, err := range limited(5000) {
		check(t, err)
		n++
		b := encodeCommit(c, n)
		number, got, err := decodeCommit(b)
		check(t, err)
		if number != n || !got.At.Equal(c.At) || got.Night() != c.Night() {
			t.Fatalf("got %d, %+v, want %d, %+v", number, got, n, c)
		}
		if again := encodeCommit(got, number); !bytes.Equal(again, b) {
			t.Fatalf("got %x, want %x", again, b)
		}
		if _, _, err := decodeCommit(b[:len(b)-1]); !errors.Is(err, errBody) {
			t.Fatalf("cut off: got %v", err)
		}
	}
}

func FuzzDecodeCommit(f *testing.F) {
	for c, err := range limited(3) {
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encodeCommit(c, 7))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, _, err := decodeCommit(b); err != nil && !errors.Is(err, errBody) {
			t.Fatal(err)
		}
	})
}

// Appends that fail, or of which nobody knows whether they did, are tried again
// until each commit is there once, in its author's order.
func TestFeedThroughFaults(t *testing.T) {
	app := partitiontest.Deploy(t, partition.Application{Descriptor: commitsDescriptor(4)}, partitiontest.Options{})
	for seed, do := range []storagetest.Effect{
		storagetest.UnknownDone(), storagetest.UnknownNotDone(), storagetest.Fail(storage.ErrTailFull),
	} {
		app.Store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: do, Chance: 0.05, Seed: uint64(seed)})
	}

	const commits = 300
	var acked atomic.Int64
	check(t, feed(limit(t), app.App, 8, limited(commits), nil, func(ack) { acked.Add(1) }))
	if app.Store.Injected(storagetest.OpAppend) == 0 {
		t.Error("no append has suffered")
	}
	if acked.Load() != commits {
		t.Errorf("got %d acknowledged, want %d", acked.Load(), commits)
	}
	inOrder(t, app.Store, commits)
}

// inOrder checks that a store has the first commits, each author's in order.
func inOrder(t *testing.T, store storage.Store, commits int) {
	t.Helper()
	made := make(map[messages.WSID][]history.Commit)
	for c, err := range limited(commits) {
		check(t, err)
		made[messages.WSID(c.Workspace())] = append(made[messages.WSID(c.Workspace())], c)
	}
	nights, counted := make(map[messages.WSID]messages.Number), make(periods)
	for ws, want := range made {
		n := 0
		for e, err := range store.WLog(limit(t), ws, 1) {
			check(t, err)
			if err := compareEvent(&e, want, nights, counted); err != nil {
				t.Error(err)
			}
			n++
		}
		if n != len(want) {
			t.Errorf("author %010x: got %d commits, want %d", uint64(ws), n, len(want))
		}
	}
}

// What is told before the kill is read, half a line is not.
func TestListen(t *testing.T) {
	var c crash
	n := 0
	check(t, c.listen(strings.NewReader("3 7 0123456789ab\n4 8 ba9876543210\n4 9 ba98"), func() error { n++; return nil }))
	if n != 2 || len(c.acks) != 2 || c.acks[1] != (ack{partition: 4, offset: 8, commit: "ba9876543210"}) {
		t.Errorf("got %d, %+v", n, c.acks)
	}
	for _, line := range []string{"hello\n", "x 1 abc\n", "1 -1 abc\n"} {
		if err := c.listen(strings.NewReader(line), func() error { return nil }); err == nil {
			t.Errorf("%q: got no error", line)
		}
	}
}

func TestTellAcks(t *testing.T) {
	r, w := io.Pipe()
	acks := make(chan ack)
	told := make(chan error, 1)
	go func() { told <- tellAcks(w, acks) }()
	lines := bufio.NewScanner(r)
	for i := range 3 {
		want := ack{partition: 1, offset: messages.PLogOffset(i), commit: "0123456789ab"}
		acks <- want
		if !lines.Scan() {
			t.Fatal("no line, though it was acknowledged")
		}
		if got, err := parseAck(lines.Text()); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	check(t, r.CloseWithError(errors.New("nobody listens")))
	acks <- ack{}
	close(acks)
	if err := <-told; err == nil || !strings.Contains(err.Error(), "nobody listens") {
		t.Errorf("got %v, want the error of writing", err)
	}
}
