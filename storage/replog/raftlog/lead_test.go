package raftlog

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/replog"
)

// TestImpatientCaller gives up while its entry is under way. Raft leads on, and this node begins anew behind the entry.
func TestImpatientCaller(t *testing.T) {
	t.Parallel()
	err := impatientCaller(t)
	// On a machine that stands still for a while raft loses the others before, or nothing is under way yet.
	for tries := 1; tries < 3 && (disturbed(err) || errors.Is(err, context.DeadlineExceeded)) && !gaveUp(err); tries++ {
		err = impatientCaller(t)
	}
	if !gaveUp(err) {
		t.Fatalf("got %v, want ErrOutcomeUnknown because of the deadline", err)
	}
}

func gaveUp(err error) bool {
	return errors.Is(err, messages.ErrOutcomeUnknown) && errors.Is(err, context.DeadlineExceeded)
}

func impatientCaller(t *testing.T) error {
	r := newRig(t, newCluster(t, newInProcess(), nil))
	n := nodes[0]
	r.lead(n)
	r.must(n, 1)
	before, _ := r.log(n).Leadership()
	r.c.Cut(r, n)
	ctx, cancel := context.WithTimeout(r.ctx, 100*time.Millisecond)
	defer cancel()
	err := r.log(n).Append(ctx, 1, []byte("doubtful"))
	if !gaveUp(err) {
		return err
	}
	if now, _ := r.log(n).Leadership(); now.Term == before.Term {
		t.Errorf("it leads on: %+v", now)
	}
	r.c.Heal(r, n)
	r.lead(n)
	if got := r.books[n].end().Head; got != 2 {
		t.Errorf("it leads with %d entries, want 2: its own log has it", got)
	}
	r.must(n, 1)
	return err
}

// TestBeginsBehindWhatIsThere elects a node whose replica is slow.
func TestBeginsBehindWhatIsThere(t *testing.T) {
	t.Parallel()
	r := newRig(t, newCluster(t, newInProcess(), nil))
	n, next := nodes[0], nodes[1]
	r.lead(n)
	r.must(n, 1)
	r.catchUp(next, n)
	b := r.books[next]
	release := b.stop()
	defer release()
	r.must(n, 3)
	r.c.Elect(r, next)
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if now, _ := r.log(next).Leadership(); now.Term != 0 {
			t.Fatalf("it leads with %d of 4 entries", b.end().Head)
		}
	}
	release()
	r.lead(next) // on a busy machine it may have to be elected again
	if head := b.end().Head; head != 4 {
		t.Errorf("it leads with %d of 4 entries", head)
	}
}

// TestManyReaders shares questions.
func TestManyReaders(t *testing.T) {
	t.Parallel()
	r := newRig(t, newCluster(t, newInProcess(), nil))
	var told atomic.Int64
	for told.Load() == 0 && r.ctx.Err() == nil { // on a machine that stands still for a while it loses the others
		r.lead(nodes[0])
		var group sync.WaitGroup
		for range 64 {
			group.Go(func() {
				for range 10 {
					err := r.log(nodes[0]).Verify(r.ctx)
					switch {
					case err == nil:
						told.Add(1)
					case !errors.Is(err, replog.ErrNotOwner):
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
	}
	if told.Load() == 0 {
		t.Error("nobody was told that the node leads")
	}
}

// TestOldAnswersDoNotCount: a process that was paused finds answers that were given before another node led.
func TestOldAnswersDoNotCount(t *testing.T) {
	t.Parallel()
	servers := []raft.Server{{ID: "n1"}, {ID: "n2"}, {ID: "n3"}, {ID: "n4", Suffrage: raft.Nonvoter}}
	var a acks
	before := a.now()
	mark := a.mark()
	a.add("n2", 5, before, 0)
	if a.majority(servers, nodes[0], 5, mark) {
		t.Fatal("an answer counts that was asked for before")
	}
	a.add("n4", 5, a.now(), 0)
	if a.majority(servers, nodes[0], 5, mark) {
		t.Fatal("a node counts that does not vote")
	}
	a.add("n3", 4, a.now(), 0)
	if a.majority(servers, nodes[0], 5, mark) {
		t.Fatal("an answer counts of another term")
	}
	a.add("n2", 5, a.now(), 0)
	a.add("n2", 5, before, 0)
	if !a.majority(servers, nodes[0], 5, mark) {
		t.Fatal("two of three are no majority")
	}
	if a.majority(servers, nodes[0], 5, a.mark()) {
		t.Fatal("it counts for readers who came later")
	}
}

// TestOutcomes is the table of what raft's answers mean.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err      error
		response any
		want     error
		leads    bool
	}{
		{nil, replog.Accepted, nil, true},
		{nil, replog.Void, replog.ErrMoved, true},
		{nil, replog.Seen, replog.ErrMoved, true},
		{nil, errEIO, messages.ErrOutcomeUnknown, false},
		{nil, nil, messages.ErrOutcomeUnknown, false},
		{raft.ErrNotLeader, nil, replog.ErrNotOwner, false},
		{raft.ErrEnqueueTimeout, nil, replog.ErrNotOwner, false},
		{raft.ErrLeadershipTransferInProgress, nil, replog.ErrNotOwner, false},
		{raft.ErrLeadershipLost, nil, messages.ErrOutcomeUnknown, false},
		{raft.ErrRaftShutdown, nil, messages.ErrOutcomeUnknown, false},
		{raft.ErrAbortedByRestore, nil, messages.ErrOutcomeUnknown, false},
		{errEIO, nil, messages.ErrOutcomeUnknown, false},
	} {
		l, err := New(Options{Dir: t.TempDir(), Node: nodes[0], transport: func() raft.Transport { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		l.state.Term = 9
		got := l.outcome(9, test.err, func() any { return test.response })
		if !errors.Is(got, test.want) || test.want == nil && got != nil {
			t.Errorf("%v, %v: got %v, want %v", test.err, test.response, got, test.want)
		}
		if leads := l.state.Term != 0; leads != test.leads {
			t.Errorf("%v, %v: it leads: %v, want %v", test.err, test.response, leads, test.leads)
		}
	}
}
