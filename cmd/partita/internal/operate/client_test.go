package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/httpclient"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// serverProcess is `partita serve` as a process of its own, always at the same address.
type serverProcess struct {
	t         *testing.T
	dir, addr string
	// args are flags of serve besides those that all have.
	args    []string
	stderr  bytes.Buffer
	command *exec.Cmd
}

// startServer makes a store and serves it, with more flags.
func startServer(t *testing.T, args ...string) *serverProcess {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	store, err := bolt.Open(limit(t), dir, descriptor(), bolt.Options{Create: true})
	check(t, err)
	check(t, store.Close(limit(t)))
	// Somebody else could take the port before the server does: then it says so.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	s := &serverProcess{t: t, dir: dir, addr: l.Addr().String(), args: args}
	check(t, l.Close())
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *serverProcess) url() string { return "http://" + s.addr }

// start returns when the server listens.
func (s *serverProcess) start() {
	s.t.Helper()
	args := append([]string{programCommand, "serve", "--db", s.dir, "--listen", s.addr, "--json"}, s.args...)
	s.command = exec.CommandContext(limit(s.t), os.Args[0], args...)
	s.command.Stderr = &s.stderr
	out, err := s.command.StdoutPipe()
	check(s.t, err)
	check(s.t, s.command.Start())
	var told serving
	if err := json.NewDecoder(out).Decode(&told); err != nil || told.URL != s.url() {
		_ = s.command.Wait()
		s.t.Fatalf("got %q, %v: %s", told.URL, err, &s.stderr)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
}

// kill sends SIGKILL.
func (s *serverProcess) kill() {
	_ = s.command.Process.Kill()
	_ = s.command.Wait()
}

// ledger is what the callers were answered and what the followers have seen.
type ledger struct {
	mu    sync.Mutex
	acked []partition.Appended
	// milestones are closed one after the other: so many appends were acknowledged.
	milestones map[int]chan struct{}
}

func (l *ledger) ack(a *partition.Appended) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked = append(l.acked, *a)
	if reached := l.milestones[len(l.acked)]; reached != nil {
		close(reached)
	}
}

// TestClientSurvivesKills: while the server is killed and started again, each append of the client is written once, and
// whoever follows a log with it is given each event once, in order.
func TestClientSurvivesKills(t *testing.T) {
	const callers, each = 8, 40
	server := startServer(t)
	ctx := limit(t)
	client, err := httpclient.New(server.url(), httpclient.Options{MaxDelay: 100 * time.Millisecond})
	check(t, err)
	t.Cleanup(client.Close)
	check(t, client.Ready(ctx))
	l := &ledger{milestones: map[int]chan struct{}{60: make(chan struct{}), 150: make(chan struct{}), 240: make(chan struct{})}}
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				done, err := client.Append(ctx, partition.AppendTo{Workspace: 4, Kind: shop}, partition.Draft{
					Wanted: []partition.Wanted{{Seq: invoice}}, Records: []partition.DraftRecord{{New: true, Data: []byte(`"row"`)}}, Body: []byte("1"),
				})
				if err != nil {
					t.Error(err)
					return
				}
				l.ack(done)
			}
		})
	}
	all.Go(func() { follows(ctx, t, client, callers*each) })
	all.Go(func() { feeds(ctx, t, client, callers*each) })
	for _, n := range []int{60, 150, 240} {
		select {
		case <-l.milestones[n]:
		case <-ctx.Done():
			t.Fatalf("%d appends were never acknowledged: %s", n, &server.stderr)
		}
		server.kill()
		server.start()
	}
	all.Wait()
	l.isGapless(t, callers*each)
	numbers, err := client.Numbers(ctx, 4)
	check(t, err)
	if got := numbers.Of(invoice); len(got) != 1 || got[0].Number != callers*each {
		t.Errorf("got %v", numbers)
	}
	server.kill()
	run(t, "verify", "--db", server.dir).has(t, exitFine)
}

// isGapless checks that each of n appends has an offset and a number of its own.
func (l *ledger) isGapless(t *testing.T, n int) {
	t.Helper()
	slices.SortFunc(l.acked, func(a, b partition.Appended) int { return int(a.WLogOffset) - int(b.WLogOffset) })
	for i, a := range l.acked {
		if a.WLogOffset != messages.WLogOffset(i+1) || len(a.Numbers) != 1 || a.Numbers[0].Number != messages.Number(i+1) {
			t.Fatalf("append %d: got %+v", i+1, a)
		}
	}
	if len(l.acked) != n {
		t.Errorf("got %d appends acknowledged, want %d", len(l.acked), n)
	}
}

// follows reads the workspace's log up to event n.
func follows(ctx context.Context, t *testing.T, client *httpclient.Client, n int) {
	next := messages.WLogOffset(1)
	for e, err := range client.FollowWLog(ctx, 4, 1) {
		if err != nil || e.WLogOffset != next {
			t.Errorf("got offset %d, %v, want %d", e.WLogOffset, err, next)
			return
		}
		if next++; int(next) > n {
			return
		}
	}
}

// feeds reads the feed of the application up to event n; it goes on with a new feed every now and then.
func feeds(ctx context.Context, t *testing.T, client *httpclient.Client, n int) {
	next := messages.PLogOffset(1)
	for feed := client.Feed(""); int(next) <= n; feed = client.Feed(feed.Cursor()) {
		for e, err := range feed.Follow(ctx) {
			if err != nil || e.PLogOffset != next {
				t.Errorf("got offset %d, %v, want %d", e.PLogOffset, err, next)
				return
			}
			if next++; next%50 == 0 || int(next) > n {
				break
			}
		}
	}
}

// TestClientAgainstProcess: errors of a server are those of an embedded application, and a server that is not there is
// waited for until the context ends.
func TestClientAgainstProcess(t *testing.T) {
	server := startServer(t)
	client, err := httpclient.New(server.url(), httpclient.Options{})
	check(t, err)
	t.Cleanup(client.Close)
	_, err = client.Append(limit(t), partition.AppendTo{Workspace: 4, Kind: 9}, partition.Draft{})
	if !errors.Is(err, messages.ErrUnknownKind) {
		t.Errorf("got %v", err)
	}
	server.kill()
	client.Close() // what is sent over a connection that has ended, and is not known to have, may have been done
	ctx, cancel := context.WithTimeout(limit(t), time.Second)
	defer cancel()
	_, err = client.Append(ctx, partition.AppendTo{Workspace: 4, Kind: shop}, partition.Draft{})
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, messages.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "connect") {
		t.Errorf("got %v", err)
	}
}
