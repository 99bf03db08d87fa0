package replogtest

import (
	"errors"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/replog"
)

func testNotOwner(r *rig) {
	n := r.nodes[0]
	r.elect(n)
	r.must(n, 2)
	for _, other := range r.nodes[1:] {
		if !other.replica.await(r.ctx, 2) {
			r.Fatal("a follower gets nothing")
		}
		if err := r.append(other); !errors.Is(err, replog.ErrNotOwner) {
			r.Errorf("append: got %v, want ErrNotOwner", err)
		}
		if err := other.log.Verify(r.ctx); !errors.Is(err, replog.ErrNotOwner) {
			r.Errorf("verify: got %v, want ErrNotOwner", err)
		}
		if err := other.log.Transfer(r.ctx, n.id); !errors.Is(err, replog.ErrNotOwner) {
			r.Errorf("transfer: got %v, want ErrNotOwner", err)
		}
		r.await(other, "it knows the leader", func(l replog.Leadership) bool { return l.Leader == n.id && l.Term == 0 })
	}
	r.verify(n)
}

// testCutOff cuts off whoever leads, while it does not know.
func testCutOff(r *rig) {
	for round := range 2 {
		n, next := r.nodes[round], r.nodes[round+1]
		r.elect(n)
		r.must(n, 2)
		r.cluster.Cut(r, n.id)
		switch err := r.append(n); {
		case errors.Is(err, messages.ErrOutcomeUnknown), errors.Is(err, replog.ErrNotOwner):
		default:
			r.Errorf("append: got %v, want ErrOutcomeUnknown or ErrNotOwner", err)
		}
		if err := n.log.Verify(r.ctx); !errors.Is(err, replog.ErrNotOwner) {
			r.Errorf("verify: got %v, want ErrNotOwner", err)
		}
		if err := r.append(n); !errors.Is(err, replog.ErrNotOwner) {
			r.Errorf("the next append: got %v, want ErrNotOwner", err)
		}
		r.elect(next)
		r.must(next, 2)
		r.verify(next)
		r.cluster.Heal(r, n.id)
		if !n.replica.await(r.ctx, next.replica.end().Head) {
			r.Fatalf("node %s does not catch up", n.id)
		}
	}
	// One that reads without having written.
	n := r.nodes[2]
	r.cluster.Cut(r, n.id)
	if err := n.log.Verify(r.ctx); !errors.Is(err, replog.ErrNotOwner) {
		r.Errorf("verify: got %v, want ErrNotOwner", err)
	}
	r.cluster.Heal(r, n.id)
	r.elect(n)
}

// testBegin lets a node be elected that has not applied everything.
func testBegin(r *rig) {
	n, next := r.nodes[0], r.nodes[1]
	r.elect(n)
	r.must(n, 1)
	if !next.replica.await(r.ctx, 1) {
		r.Fatal("a follower gets nothing")
	}
	reached := next.replica.shut()
	r.must(n, 5)
	select {
	case <-reached:
	case <-r.ctx.Done():
		r.Fatal("a follower gets nothing")
	}
	r.cluster.Elect(r, next.id)
	r.await(next, "it is elected", func(l replog.Leadership) bool { return l.Leader == next.id })
	if now, _ := next.log.Leadership(); now.Term != 0 {
		r.Errorf("it leads, and has not applied everything: %+v", now)
	}
	if err := next.log.Verify(r.ctx); !errors.Is(err, replog.ErrNotOwner) {
		r.Errorf("verify: got %v, want ErrNotOwner", err)
	}
	if err := r.append(next); !errors.Is(err, replog.ErrNotOwner) {
		r.Errorf("append: got %v, want ErrNotOwner", err)
	}
	next.replica.open()
	r.await(next, "it leads", func(l replog.Leadership) bool { return l.Term != 0 })
	if got := next.replica.end().Head; got != 6 {
		r.Errorf("it leads with %d of 6 entries", got)
	}
	r.must(next, 1)
}

func testTransfer(r *rig) {
	n, next := r.nodes[0], r.nodes[1]
	r.elect(n)
	r.must(n, 2)
	before, _ := n.log.Leadership()
	if err := n.log.Transfer(r.ctx, next.id); err != nil {
		r.Fatalf("transfer: %v", err)
	}
	if now, _ := n.log.Leadership(); now.Term != 0 {
		r.Errorf("it leads on: %+v", now)
	}
	if err := r.append(n); !errors.Is(err, replog.ErrNotOwner) {
		r.Errorf("append: got %v, want ErrNotOwner", err)
	}
	r.await(next, "it leads", func(l replog.Leadership) bool { return l.Term != 0 })
	r.must(next, 2)
	if err := next.log.Transfer(r.ctx, n.id); err != nil {
		r.Fatalf("transfer back: %v", err)
	}
	r.await(n, "it leads", func(l replog.Leadership) bool { return l.Term != 0 })
	if now, _ := n.log.Leadership(); now.Term == before.Term {
		r.Errorf("it leads anew in the same term %d", now.Term)
	}
	r.must(n, 1)
	r.cluster.Cut(r, next.id)
	for tries := 1; n.log.Transfer(r.ctx, next.id) == nil; tries++ {
		if tries == 5 {
			r.Fatal("the leadership was given to who is cut off")
		}
		r.elect(n) // on a machine that stands still for a while it loses the others
	}
	r.cluster.Heal(r, next.id)
	// It was asked, perhaps, and hears that now.
	r.elect(n)
	for r.append(n) != nil {
		r.elect(n)
	}
}
