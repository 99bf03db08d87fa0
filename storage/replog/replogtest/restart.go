package replogtest

import (
	"errors"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// testRestart lets nodes come back with all that they had, or less.
func testRestart(r *rig) {
	n, other := r.nodes[0], r.nodes[1]
	r.elect(n)
	r.must(n, 10)
	for _, head := range []uint64{10, 7, 0} {
		if !other.replica.await(r.ctx, 10) {
			r.Fatal("a follower does not catch up")
		}
		r.stop(other)
		r.start(other, other.replica.forget(head))
		r.must(n, 1)
		if !other.replica.await(r.ctx, n.replica.end().Head) {
			r.Fatalf("restarted at %d: has %d of %d entries", head, other.replica.end().Head, n.replica.end().Head)
		}
	}
	// Whoever leads comes back too, and all at once.
	end := n.replica.end().Head
	for _, n := range r.nodes {
		if !n.replica.await(r.ctx, end) {
			r.Fatalf("node %s does not catch up", n.id)
		}
	}
	for _, n := range r.nodes { // not before: one alone gets nothing more
		r.stop(n)
	}
	for i, n := range r.nodes {
		r.start(n, n.replica.forget(end-uint64(i)))
	}
	r.elect(other)
	r.must(other, 2)
}

func testAhead(r *rig) {
	n := r.nodes[0]
	r.elect(n)
	r.must(n, 2)
	other := r.nodes[1]
	if !other.replica.await(r.ctx, 2) {
		r.Fatal("a follower gets nothing")
	}
	r.stop(other)
	at := other.replica.end()
	wrong := at
	wrong.Index += 1000
	log := r.cluster.Log(r, other.id)
	if err := log.Start(wrong, newReplica()); !errors.Is(err, replog.ErrAhead) {
		r.Errorf("got %v, want ErrAhead", err)
	}
	if err := log.Close(); err != nil {
		r.Errorf("close: %v", err)
	}
	r.start(other, at)
	r.must(n, 1)
}

// testTrim forgets entries. Whoever needs one of them is told, or is given all.
func testTrim(r *rig) {
	n, other := r.nodes[0], r.nodes[1]
	r.elect(n)
	r.must(n, 10)
	if !other.replica.await(r.ctx, 10) {
		r.Fatal("a follower does not catch up")
	}
	at := other.replica.end()
	other.log.Trim(other.replica.all()[4].at.Index)
	other.log.Trim(at.Index)
	other.log.Trim(other.replica.all()[2].at.Index)
	n.log.Trim(n.replica.end().Index)
	r.must(n, 1)
	r.stop(other)

	late := newReplica()
	log := r.cluster.Log(r, other.id)
	err := log.Start(replog.Position{}, late)
	if err == nil {
		for {
			now, changed := log.Leadership()
			more := late.more()
			if err = now.Stopped; err != nil || late.end().Head >= 11 {
				break
			}
			select {
			case <-changed:
			case <-r.ctx.Done():
				r.Fatalf("it has %d entries", late.end().Head)
			case <-more:
			}
		}
	}
	if err != nil && !errors.Is(err, replog.ErrBehind) {
		r.Errorf("from the beginning: got %v, want ErrBehind or nothing", err)
	}
	if err := log.Close(); err != nil {
		r.Errorf("close: %v", err)
	}
	r.start(other, other.replica.end())
	r.must(n, 1)
}

func testClosed(r *rig) {
	n, next := r.nodes[0], r.nodes[1]
	r.elect(n)
	r.must(n, 1)
	r.stop(n)
	r.stop(n)
	if err := r.append(n); !errors.Is(err, storage.ErrClosed) {
		r.Errorf("append: got %v, want ErrClosed", err)
	}
	if err := n.log.Verify(r.ctx); !errors.Is(err, storage.ErrClosed) {
		r.Errorf("verify: got %v, want ErrClosed", err)
	}
	if now, _ := n.log.Leadership(); now.Term != 0 {
		r.Errorf("it leads: %+v", now)
	}
	// Others do without it.
	r.elect(next)
	r.must(next, 2)
	r.start(n, n.replica.end())
}

// testStopped lets a replica fail that follows, and then one that leads.
func testStopped(r *rig) {
	n, other := r.nodes[0], r.nodes[1]
	cause := errors.New("this replica cannot go on")
	r.elect(n)
	r.must(n, 1)
	if !other.replica.await(r.ctx, 1) {
		r.Fatal("a follower gets nothing")
	}
	other.replica.failWith(cause)
	r.must(n, 1)
	r.await(other, "it has stopped", func(l replog.Leadership) bool { return errors.Is(l.Stopped, cause) })
	r.must(n, 1)
	if got := other.replica.end().Head; got != 1 {
		r.Errorf("who has stopped has %d entries", got)
	}
	r.stop(other)
	other.replica.failWith(nil)
	r.start(other, other.replica.end())

	n.replica.failWith(cause)
	if err := r.append(n); !errors.Is(err, messages.ErrOutcomeUnknown) {
		r.Errorf("append: got %v, want ErrOutcomeUnknown", err)
	}
	r.await(n, "it has stopped", func(l replog.Leadership) bool { return errors.Is(l.Stopped, cause) && l.Term == 0 })
	if err := n.log.Verify(r.ctx); !errors.Is(err, replog.ErrNotOwner) {
		r.Errorf("verify: got %v, want ErrNotOwner", err)
	}
	r.elect(other)
	r.must(other, 1)
	r.stop(n)
	n.replica.failWith(nil)
	r.start(n, n.replica.end())
}
