package raftlog

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// bytes is how much was stored and not taken.
func (b *backlog) bytes() (sum int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.waiting {
		sum += e.bytes
	}
	return sum
}

// heldBytes is how much is in the message that waits.
func (a *admission) heldBytes() (sum int) {
	if m := a.holds.Load(); m != nil {
		for _, e := range entriesOf(m) {
			sum += len(e.Data)
		}
	}
	return sum
}

// TestReplicaStandsStill: a node whose replica takes nothing has a few of the entries that the others go on to write, and all of
// them later. It votes meanwhile.
func TestReplicaStandsStill(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ size, count, most int }{
		"large entries": {1 << 20, 32, backlogBytes + 2*maxAppendBytes}, // a message is stored, the next one waits
		"small entries": {1, 300, 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			standsStill(t, test.size, test.count, test.most)
		})
	}
}

func standsStill(t *testing.T, size, count, most int) {
	r := newRig(t, newCluster(t, newSockets(t, false), nil))
	n, other, slow := nodes[0], nodes[1], nodes[2]
	r.lead(n)
	r.must(n, 1)
	r.catchUp(slow, n)
	b := r.books[slow]
	release := b.stop()
	defer release()
	l := r.log(slow)
	for i := 0; i < count || l.transport.admission.heldBytes() == 0; i++ { // more, if another node led for a while
		r.write(n, strings.Repeat("b", size))
	}
	if got := l.backlog.bytes() + l.transport.admission.heldBytes(); got > most {
		t.Errorf("%d bytes wait for the replica, want at most %d", got, most)
	}
	r.stop(n)
	delete(r.books, n)
	r.until(func() bool { return r.log(other).raft.State() == raft.Leader }, "the node does not vote")
	release()
	r.lead(other)
	r.write(other, "body")
	r.catchUp(slow, other)
}

// until waits for something that nobody tells.
func (r *rig) until(so func() bool, or string) {
	r.Helper()
	for !so() {
		select {
		case <-time.After(lookEvery):
		case <-r.ctx.Done():
			r.Fatal(or)
		}
	}
}

// TestBacklogIsOfTheReplica: entries that raft has for itself are not waited for.
func TestBacklogIsOfTheReplica(t *testing.T) {
	t.Parallel()
	b := newBacklog()
	for i := range uint64(2 * backlogEntries) {
		b.stored([]*raft.Log{{Index: i, Type: raft.LogNoop}})
	}
	if b.exceeds(2 * backlogEntries) {
		t.Error("elections are waited for")
	}
}

// TestBacklogForgetsWhatIsDeleted: entries that another leader has replaced are not waited for.
func TestBacklogForgetsWhatIsDeleted(t *testing.T) {
	t.Parallel()
	b := newBacklog()
	b.stored([]*raft.Log{{Index: 1, Data: make([]byte, backlogBytes)}, {Index: 2, Data: make([]byte, 1)}, {Index: 3, Data: make([]byte, 1)}})
	for _, test := range []struct {
		committed uint64
		want      bool
	}{{1, false}, {2, true}, {3, true}} {
		if got := b.exceeds(test.committed); got != test.want {
			t.Errorf("committed %d: got %t, want %t", test.committed, got, test.want)
		}
	}
	b.deleted(2, 3)
	if b.exceeds(3) {
		t.Error("entries that were deleted are waited for")
	}
	b.stored([]*raft.Log{{Index: 2, Data: make([]byte, 1)}})
	if !b.exceeds(3) {
		t.Error("the new entry is not waited for")
	}
	if b.taken(1); b.exceeds(3) {
		t.Error("an entry that was taken is waited for")
	}
}
