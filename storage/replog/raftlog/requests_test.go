package raftlog

import (
	"errors"
	"net"
	"testing"

	"github.com/partita-go/partita/storage"
)

// TestRequestsBesideLogs lets requests through the port of logs, by TLS.
func TestRequestsBesideLogs(t *testing.T) {
	t.Parallel()
	a, b := newPorts(t, true)
	open(t, b, 1)
	from, err := a.Requests()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from.Dial(t.Context(), nodes[1]); !errors.Is(err, errRefused) {
		t.Errorf("nobody accepts: got %v, want a refusal", err)
	}
	to, err := b.Requests()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Requests(); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("twice: got %v, want ErrLocked", err)
	}
	c, err := from.Dial(t.Context(), nodes[1])
	if err != nil {
		t.Fatal(err)
	}
	other, err := to.Accept()
	if err != nil {
		t.Fatal(err)
	}
	say(t, c, other)
	say(t, other, c)
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: got %v, want ErrClosed", err)
	}
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("got %d bytes of a stream that is closed", n)
	}
	if _, err := New(Options{Dir: t.TempDir(), Node: nodes[0], Shard: requestShard, Port: a}); !errors.Is(err, ErrOptions) {
		t.Errorf("a log in its place: got %v, want ErrOptions", err)
	}
}

// TestStanding says how far the nodes are.
func TestStanding(t *testing.T) {
	t.Parallel()
	r := newRig(t, newCluster(t, newInProcess(), nil))
	r.lead(nodes[0])
	r.must(nodes[0], 3)
	r.catchUp(nodes[1], nodes[0])
	if s := r.log(nodes[0]).Standing(); s.Applied.Head != 3 {
		t.Errorf("leader: got %+v, want 3 entries", s)
	}
	if s := r.log(nodes[1]).Standing(); s.Heard.IsZero() {
		t.Errorf("follower: got %+v, want that it has heard the leader", s)
	}
}
