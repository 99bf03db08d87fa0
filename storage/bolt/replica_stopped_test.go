package bolt

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/replog"
)

// untilHead waits until a replica has applied what another one has.
func untilHead(t *testing.T, s, of *Store) {
	t.Helper()
	for s.replica.head.Load() < of.replica.head.Load() {
		runtime.Gosched()
		expect.NoError(t, t.Context().Err())
	}
}

// untilStopped waits until a replica is given nothing more, and returns why.
func untilStopped(t *testing.T, n *replicaNode) error {
	t.Helper()
	for {
		now, changed := n.log.Leadership()
		if now.Stopped != nil {
			return now.Stopped
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("node %s goes on: %+v", n.id, now)
		}
	}
}

// closesInTime closes a node that has nothing to wait for.
func closesInTime(t *testing.T, n *replicaNode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	expect.NoError(t, n.store.Close(ctx))
	n.store = nil
}

// A replica stops at an entry that changes subscriptions. Nobody waits for that entry: it closes, and has all when it comes
// back.
func TestReplicaStopsAtChanges(t *testing.T) {
	const limit = 8
	for name, fill := range map[string]func(t *testing.T, w *writer, s *Store) *faulty.Point{
		"log.db": func(t *testing.T, w *writer, s *Store) *faulty.Point {
			disk := &faulty.CommitsOf(s.log.File).Before
			disk.Fail(errNoSpace)
			w.append(1)
			untilHead(t, s, w.s)
			expect.ErrorIs(t, s.log.AwaitEntry(t.Context(), w.s.replica.head.Load()), storage.ErrFull)
			return disk
		},
		"state.db": func(t *testing.T, w *writer, s *Store) *faulty.Point {
			disk := &faulty.CommitsOf(s.state).Before
			disk.Fail(errNoSpace)
			for !s.tailsExceed(s.shares.tail, limit) {
				w.append(1)
				w.flush()
				untilHead(t, s, w.s)
			}
			return disk
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := testDescriptor(1, messages.TrustNone)
			r := openReplicas(t, 3, d, Options{TailEvents: limit})
			w := takeOver(t, r.nodes[0].store, 0)
			stuck := r.nodes[2]
			w.append(1)
			untilHead(t, stuck.store, w.s)
			disk := fill(t, w, stuck.store)
			sub := storage.Subscription{
				Name: "s", SubscriptionSource: storage.SubscriptionSource{Kinds: []messages.WSKind{testKind}},
			}
			expect.NoError(t, w.s.PutSubscription(t.Context(), sub))
			expect.ErrorIs(t, untilStopped(t, stuck), storage.ErrFull)
			disk.Clear() // what has come before may be written now, and what has not never comes
			_, err := stuck.store.SubscriptionNames(replog.Local(t.Context()))
			expect.NoError(t, err)
			closesInTime(t, stuck)
			r.open(t, stuck, d)
			r.sameSubscriptions(t, w.s)
		})
	}
}
