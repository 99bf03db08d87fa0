package raftlog

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/storage/replog"
)

const keep = 8

// newKeepers is a cluster that keeps few entries.
func newKeepers(t testing.TB) *rig {
	return newRig(t, newCluster(t, newInProcess(), func(_ replog.NodeID, o *Options) { o.Keep = keep }))
}

// forget lets a node forget what its replica has.
func (r *rig) forget(id replog.NodeID) {
	r.Helper()
	l := r.log(id)
	taken := beside(func() error { return answerOf(r, l.raft.Snapshot) })
	at := r.books[id].end()
	l.Trim(at.Index - 1)
	select {
	case err := <-taken:
		r.Fatalf("node %s: a snapshot before the replica has all on its disk: %v", id, err)
	case <-time.After(100 * time.Millisecond):
	}
	l.Trim(at.Index)
	if err := <-taken; err != nil {
		r.Fatalf("node %s: snapshot: %v", id, err)
	}
}

// TestSnapshotIsAPosition lets nodes forget entries, and come back.
func TestSnapshotIsAPosition(t *testing.T) {
	t.Parallel()
	r := newKeepers(t)
	n, other := nodes[0], nodes[1]
	r.lead(n)
	r.must(n, 3*keep)
	r.catchUp(other, n)
	r.stop(other)
	r.books[other].at.Sum++
	if err := r.start(other, r.books[other]); !errors.Is(err, replog.ErrDiverged) {
		t.Errorf("another entry where the replica is: got %v, want ErrDiverged", err)
	}
	r.stop(other)
	r.books[other].at.Sum--
	if err := r.start(other, r.books[other]); err != nil {
		t.Fatal(err)
	}
	r.must(n, 1) // raft takes a snapshot of what it has applied since the start
	r.catchUp(other, n)
	r.forget(other)
	if first, err := r.log(other).disk.wal.FirstIndex(); err != nil || first < 2*keep {
		t.Fatalf("the log begins at %d, %v", first, err)
	}
	r.stop(other)
	b := r.books[other]
	whole := b.end()
	if err := r.start(other, newBook()); !errors.Is(err, replog.ErrBehind) {
		t.Errorf("an empty replica: got %v, want ErrBehind", err)
	}
	r.stop(other)
	b.at.Sum++
	if err := r.start(other, b); !errors.Is(err, replog.ErrDiverged) {
		t.Errorf("another replica: got %v, want ErrDiverged", err)
	}
	r.stop(other)
	b.at = whole
	b.at.Index += 100
	if err := r.start(other, b); !errors.Is(err, replog.ErrAhead) {
		t.Errorf("a replica ahead: got %v, want ErrAhead", err)
	}
	r.stop(other)
	b.at = whole
	r.must(n, 3)
	if err := r.start(other, b); err != nil {
		t.Fatal(err)
	}
	r.catchUp(other, n)
	r.sameBooks(n, other)
}

// newAway keeps a node away until the one that leads has forgotten what it lacks.
func newAway(t testing.TB) (r *rig, n, away replog.NodeID) {
	r, n, away = newKeepers(t), nodes[0], nodes[2]
	r.lead(n)
	r.must(n, 3)
	r.catchUp(away, n)
	r.stop(away)
	r.writeMuch(n)
	r.forget(n)
	return r, n, away
}

// writeMuch writes more than a segment: the WAL has what it was told to delete as long as it writes there.
func (r *rig) writeMuch(n replog.NodeID) {
	large := strings.Repeat("large", 32<<10)
	for range 3 * keep {
		r.write(n, large)
	}
}

// TestKeptForANode: what comes behind a copy stays until the node that it is for has it.
func TestKeptForANode(t *testing.T) {
	t.Parallel()
	r, n, away := newAway(t)
	l := r.log(n)
	l.KeepFor(away)
	seeded := newBook()
	seeded.at, seeded.bodies = r.books[n].end(), slices.Clone(r.books[n].bodies)
	r.writeMuch(n)
	l.Trim(r.books[n].end().Index)
	if err := answerOf(r, l.raft.Snapshot); !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		t.Errorf("a snapshot while entries are kept: got %v, want ErrNothingNewToSnapshot", err)
	}
	if err := Seed(r.c.options(away), seeded.at); err != nil {
		t.Fatal(err)
	}
	if err := r.start(away, seeded); err != nil {
		t.Fatal(err)
	}
	r.catchUp(away, n)
	r.sameBooks(away, n)
	r.until(func() bool {
		r.write(n, "body")
		l.Trim(r.books[n].end().Index)
		return answerOf(r, l.raft.Snapshot) == nil
	}, "entries are kept although the node has them")
}

// TestKeptForNobody: a name that is none keeps nothing, nor does a copy that was given up, or what was kept before another node
// has led.
func TestKeptForNobody(t *testing.T) {
	t.Parallel()
	r := newKeepers(t)
	n, other := nodes[0], nodes[1]
	keeps := func() bool {
		l := r.log(n)
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.keepsAll()
	}
	r.lead(n)
	if r.log(n).KeepFor(""); keeps() {
		t.Error("it keeps for a node without a name")
	}
	drop := r.log(n).KeepFor("n9")
	if !keeps() {
		t.Error("it keeps nothing")
	}
	if drop(); keeps() {
		t.Error("it keeps for a node that was given up")
	}
	r.log(n).KeepFor("n9")
	r.lead(other)
	if keeps() {
		t.Error("it keeps although another node leads")
	}
}

// TestAwayForTooLong keeps a node away until the others have forgotten what it lacks.
func TestAwayForTooLong(t *testing.T) {
	t.Parallel()
	r, n, away := newAway(t)
	r.catchUp(nodes[1], n)
	r.forget(nodes[1]) // on a machine that stands still for a while it may lead
	if err := r.start(away, r.books[away]); err != nil {
		t.Fatal(err)
	}
	l := r.await(away, "it has stopped", func(l replog.Leadership) bool { return l.Stopped != nil })
	if !errors.Is(l.Stopped, replog.ErrBehind) {
		t.Fatalf("got %v, want ErrBehind", l.Stopped)
	}
	r.stop(away)
	if err := r.start(away, r.books[away]); !errors.Is(err, replog.ErrBehind) {
		t.Fatalf("again: got %v, want ErrBehind", err)
	}
	r.stop(away)
	// Seeded from a node whose replica is where the leader's log begins, or behind that.
	seeded := newBook()
	seeded.at, seeded.bodies = r.books[n].end(), slices.Clone(r.books[n].bodies)
	if err := r.start(away, seeded); err != nil {
		t.Fatal(err)
	}
	r.must(n, 3)
	r.catchUp(away, n)
	r.sameBooks(n, away)
}

func (r *rig) sameBooks(a, b replog.NodeID) {
	r.Helper()
	if x, y := r.books[a], r.books[b]; x.end() != y.end() || !slices.Equal(x.bodies, y.bodies) {
		r.Errorf("nodes %s and %s differ: %+v, %+v", a, b, x.end(), y.end())
	}
}
