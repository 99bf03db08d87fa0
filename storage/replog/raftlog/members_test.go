package raftlog

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/partita-go/partita/storage/replog"
)

// members are the names of those who vote, as a node knows them.
func (r *rig) members(id replog.NodeID) (voters []replog.NodeID) {
	for _, m := range r.log(id).Members() {
		if m.Votes {
			voters = append(voters, m.Node)
		}
	}
	return voters
}

// join makes a new node's directory, and starts it with a replica.
func (r *rig) join(id replog.NodeID, b *book) {
	r.Helper()
	if err := Join(r.c.options(id), b.end()); err != nil {
		r.Fatal(err)
	}
	if err := r.start(id, b); err != nil {
		r.Fatal(err)
	}
}

// seeded is a book made of another node's.
func (r *rig) seeded(from replog.NodeID) *book {
	b, of := newBook(), r.books[from]
	of.mu.Lock()
	defer of.mu.Unlock()
	b.at, b.bodies = of.at, slices.Clone(of.bodies)
	return b
}

// TestAddedNode adds a node that has nothing, and one whose replica was made of another one's, while there are appends. Both
// have all then, and vote.
func TestAddedNode(t *testing.T) {
	t.Parallel()
	r := newRig(t, newCluster(t, newInProcess(), nil))
	n := nodes[0]
	r.lead(n)
	r.must(n, 100)
	r.join("n4", newBook())
	r.join("n5", r.seeded(n))
	if err := r.log(nodes[1]).Add(r.ctx, "n4"); !errors.Is(err, replog.ErrNotOwner) {
		t.Errorf("not the owner: got %v", err)
	}
	added := beside(func() error {
		err := r.add(n, "n4")
		if err == nil {
			err = r.add(n, "n5")
		}
		return err
	})
	for done := false; !done; {
		select {
		case err := <-added:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		default:
			r.must(n, 1)
		}
	}
	if got, want := r.members(n), []replog.NodeID{"n1", "n2", "n3", "n4", "n5"}; !slices.Equal(got, want) {
		t.Errorf("got members %v, want %v", got, want)
	}
	if err := r.asOwner(n, func() error { return r.log(n).Add(r.ctx, "n5") }); !errors.Is(err, ErrMember) {
		t.Errorf("again: got %v, want ErrMember", err)
	}
	// Without two of the old ones there is no majority but with the new ones.
	for _, id := range nodes[1:] {
		r.stop(id)
		delete(r.books, id)
	}
	r.lead(n)
	r.must(n, 3)
	for _, id := range []replog.NodeID{"n4", "n5"} {
		r.catchUp(id, n)
		r.sameBooks(n, id)
	}
	r.lead("n5")
	r.must("n5", 1)
}

// TestNodeThatCannotCatchUp adds a node that does not run: it does not count.
func TestNodeThatCannotCatchUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, newCluster(t, newInProcess(), nil))
	n := nodes[0]
	r.lead(n)
	ctx, cancel := context.WithCancel(r.ctx)
	added := beside(func() error { return r.asOwner(n, func() error { return r.log(n).Add(ctx, "n4") }) })
	for r.log(n).member("n4") == nil {
		r.must(n, 1)
	}
	r.must(n, 20)
	cancel()
	select {
	case err := <-added:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-r.ctx.Done():
		t.Fatal("it goes on although nobody waits")
	}
	if got := r.members(n); !slices.Equal(got, nodes) {
		t.Errorf("got voters %v, want %v", got, nodes)
	}
	if err := r.asOwner(n, func() error { return r.log(n).Remove(r.ctx, "n4") }); err != nil && !errors.Is(err, ErrMember) {
		t.Errorf("take it back: %v", err)
	}
	if got := len(r.log(n).Members()); got != 3 {
		t.Errorf("got %d members", got)
	}
}

// TestRemovedNode removes a node that goes on: it leads no more, and does not disturb those that stay.
func TestRemovedNode(t *testing.T) {
	t.Parallel()
	r := newRig(t, newCluster(t, newInProcess(), func(_ replog.NodeID, o *Options) { o.Failover = MinFailover }))
	n, gone := nodes[0], nodes[2]
	r.lead(gone)
	r.must(gone, 1)
	if err := r.asOwner(gone, func() error { return r.log(gone).Remove(r.ctx, gone) }); !errors.Is(err, ErrMember) {
		t.Errorf("the owner itself: got %v, want ErrMember", err)
	}
	r.lead(n)
	if err := r.asOwner(n, func() error { return r.log(n).Remove(r.ctx, "n9") }); !errors.Is(err, ErrMember) {
		t.Errorf("nobody: got %v, want ErrMember", err)
	}
	if err := r.asOwner(n, func() error { return r.log(n).Remove(r.ctx, gone) }); err != nil && !errors.Is(err, ErrMember) {
		t.Fatal(err)
	}
	if got := r.members(n); !slices.Equal(got, nodes[:2]) {
		t.Errorf("got members %v", got)
	}
	term := r.log(n).raft.CurrentTerm()
	for end := time.Now().Add(8 * MinFailover); time.Now().Before(end); {
		r.must(n, 1)
	}
	if l := r.log(n); l.raft.CurrentTerm() != term {
		t.Logf("term %d, was %d", l.raft.CurrentTerm(), term) // a busy machine may have elected
	}
	if now, _ := r.log(gone).Leadership(); now.Term != 0 {
		t.Errorf("the removed node leads: %+v", now)
	}
	if got := r.log(gone).raft.CurrentTerm(); got > r.log(n).raft.CurrentTerm() {
		t.Errorf("the removed node is in term %d, the others in %d", got, r.log(n).raft.CurrentTerm())
	}
}

// TestNodeThatIsNeededStays removes nobody without whom nothing could be written.
func TestNodeThatIsNeededStays(t *testing.T) {
	t.Parallel()
	r := newRig(t, newCluster(t, newInProcess(), nil))
	n := nodes[0]
	r.lead(n)
	r.must(n, 1)
	r.c.Cut(t, nodes[2])
	ctx, cancel := context.WithTimeout(r.ctx, 300*time.Millisecond)
	defer cancel()
	if err := r.log(n).Remove(ctx, nodes[1]); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, replog.ErrNotOwner) {
		t.Errorf("got %v, want that it waits", err)
	}
	if got := r.members(n); !slices.Equal(got, nodes) {
		t.Errorf("got members %v", got)
	}
	r.c.Heal(t, nodes[2])
}

// TestLostDisk lets a node begin anew under its old name: nobody counts it, and it stops.
func TestLostDisk(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(Options) error{
		"created": func(o Options) error { return Create(o, nodes) },
		"joined":  func(o Options) error { return Join(o, replog.Position{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, newCluster(t, newSockets(t, false), nil))
			n, lost := nodes[0], nodes[2]
			r.lead(nodes[1]) // so that all know each other
			r.lead(n)
			r.must(n, 3)
			r.stop(lost)
			o := r.c.options(lost)
			if err := r.start(lost, newBook()); err != nil {
				t.Fatal(err) // its log has all
			}
			r.stop(lost)
			if err := os.RemoveAll(o.Dir); err != nil {
				t.Fatal(err)
			}
			if err := r.start(lost, newBook()); err == nil {
				t.Fatal("it starts without a directory")
			}
			r.stop(lost)
			if err := again(o); err != nil {
				t.Fatal(err)
			}
			if err := r.start(lost, newBook()); err != nil {
				t.Fatal(err)
			}
			r.must(n, 3)
			if name == "created" { // who has joined asks nobody
				l := r.await(lost, "it has stopped", func(l replog.Leadership) bool { return l.Stopped != nil })
				if !errors.Is(l.Stopped, ErrForgotten) {
					t.Errorf("got %v, want ErrForgotten", l.Stopped)
				}
			}
			if got := r.books[lost].end(); got.Head != 0 {
				t.Errorf("it was given %d entries", got.Head)
			}
		})
	}
}

// TestSeededInPlace makes the replica of a node anew that has its own log, where that ends before.
func TestSeededInPlace(t *testing.T) {
	t.Parallel()
	r := newKeepers(t)
	n, behind := nodes[0], nodes[2]
	r.lead(n)
	r.must(n, 3)
	r.catchUp(behind, n)
	r.stop(behind)
	r.must(n, 5)
	b := r.seeded(n)
	if err := r.start(behind, b); !errors.Is(err, replog.ErrAhead) {
		t.Fatalf("nobody has said that it was made anew: got %v, want ErrAhead", err)
	}
	r.stop(behind)
	if err := Seed(r.c.options(behind), b.end()); err != nil {
		t.Fatal(err)
	}
	r.must(n, 3)
	for range 2 { // it is remembered
		if err := r.start(behind, b); err != nil {
			t.Fatal(err)
		}
		r.catchUp(behind, n)
		r.sameBooks(n, behind)
		r.stop(behind)
	}
	ahead := r.seeded(n)
	ahead.at.Index += 100
	if err := r.start(behind, ahead); !errors.Is(err, replog.ErrAhead) {
		t.Fatalf("further than it was made: got %v, want ErrAhead", err)
	}
	r.stop(behind)
	if err := r.start(behind, b); err != nil {
		t.Fatal(err)
	}
}
