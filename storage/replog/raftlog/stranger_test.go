package raftlog

import (
	"errors"
	"strings"
	"testing"

	"github.com/partita-go/partita/storage/replog"
)

// TestOtherCluster: a node that reaches one of another cluster, which has the same names, by a wrong address is refused, with
// its log and with its requests, and neither of them stops.
func TestOtherCluster(t *testing.T) {
	t.Parallel()
	ours, theirs := newSockets(t, false), newSockets(t, false)
	a, b := newRig(t, newCluster(t, ours, nil)), newRig(t, newCluster(t, theirs, nil))
	for _, r := range []*rig{a, b} {
		r.lead(nodes[1])
		r.lead(nodes[0]) // so that all know each other
		r.must(nodes[0], 1)
		for _, id := range nodes[1:] {
			r.catchUp(id, nodes[0])
		}
	}
	from, err := ours.ports[nodes[0]].Requests()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*sockets{ours, theirs} {
		if _, err := s.ports[nodes[1]].Requests(); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := from.Dial(t.Context(), nodes[1]); err != nil {
		t.Errorf("a request to the right one: %v", err)
	} else if err := c.Close(); err != nil {
		t.Error(err)
	}
	ours.mu.Lock()
	ours.ports[nodes[1]] = theirs.ports[nodes[1]]
	ours.mu.Unlock()
	_, ofLog := ours.ports[nodes[0]].of(testShard).Dial(address(nodes[1]), patience)
	_, ofRequests := from.Dial(t.Context(), nodes[1])
	for what, err := range map[string]error{"log": ofLog, "requests": ofRequests} {
		if !errors.Is(err, errRefused) || errors.Is(err, ErrForgotten) && what == "log" {
			t.Errorf("%s: got %v, want a refusal that stops nobody", what, err)
			continue
		}
		for _, want := range []string{"node n2 at " + theirs.address(nodes[1]), "directory"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %q, want %q in it", what, err, want)
			}
		}
	}
	for what, l := range map[string]replog.Log{"ours": a.log(nodes[0]), "theirs": b.log(nodes[1])} {
		if now, _ := l.Leadership(); now.Stopped != nil {
			t.Errorf("%s has stopped: %v", what, now.Stopped)
		}
	}
}
