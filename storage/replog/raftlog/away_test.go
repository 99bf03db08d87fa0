package raftlog

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/storage/replog"
)

// sendAway cuts a node off, writes entries that it lacks, and waits until the one that leads knows that.
func (r *rig) sendAway(leader, id replog.NodeID) {
	r.Helper()
	r.c.Cut(r, id)
	for r.must(leader, 2); r.log(leader).transport.absent.has(raft.ServerID(id)) == nil; {
		r.must(leader, 1)
	}
}

// TestTransfersToANodeThatIsAway are refused. If raft has begun one before the node that leads knew it, appends go on when
// that is given up.
func TestTransfersToANodeThatIsAway(t *testing.T) {
	t.Parallel()
	r := newRig(t, newCluster(t, newInProcess(), func(_ replog.NodeID, o *Options) { o.Failover = MinFailover }))
	n, away := nodes[0], nodes[2]
	r.lead(n)
	r.sendAway(n, away)
	if err := r.asOwner(n, func() error { return r.log(n).Transfer(r.ctx, away) }); !errors.Is(err, ErrAway) {
		t.Errorf("got %v, want ErrAway", err)
	}
	for range 3 {
		l := r.log(n)
		term := l.raft.CurrentTerm()
		err := l.giveTo(r.ctx, away)
		switch {
		case err != nil:
		case l.raft.State() == raft.Leader && l.raft.CurrentTerm() == term:
			t.Error("it says that it has given up the leadership, and leads")
		default:
			t.Logf("a busy machine has elected")
		}
		r.must(n, 1)
	}
}

// TestNobodyWaitsForANodeInVain: what is sent to a node that is away ends when it is removed, and when another node leads.
func TestNobodyWaitsForANodeInVain(t *testing.T) {
	r := newRig(t, newCluster(t, newInProcess(), nil))
	n, other, away := nodes[0], nodes[1], nodes[2]
	waits := func(want bool, when string) {
		t.Helper()
		for end := time.Now().Add(patience); waiting() != want; <-time.After(lookEvery) {
			if time.Now().After(end) {
				t.Fatalf("%s: it waits: %v", when, !want)
			}
		}
	}
	r.lead(n)
	r.sendAway(n, away)
	waits(true, "away")
	r.lead(other)
	r.must(other, 1)
	b := r.books[other]
	r.stop(other) // its own wait for the node that is away ends with it
	delete(r.books, other)
	waits(false, "another node has led")
	if err := r.start(other, b); err != nil {
		t.Fatal(err)
	}
	r.lead(n)
	r.must(n, 1)
	waits(true, "it leads anew")
	if err := r.asOwner(n, func() error { return r.log(n).Remove(r.ctx, away) }); err != nil && !errors.Is(err, ErrMember) {
		t.Fatal(err)
	}
	waits(false, "removed")
}

// waiting reports whether anybody waits for a node that is away.
func waiting() bool {
	stacks := make([]byte, 1<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), ".(*absent).await(")
}
