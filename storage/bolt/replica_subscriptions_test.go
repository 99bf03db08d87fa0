package bolt

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/keeper"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/memory"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

// subscribingThree are three nodes of which the first leads, with six events of workspace 1 and subscription "s" of all.
func subscribingThree(t *testing.T) (*replicas, *writer) {
	t.Helper()
	r, w := openThree(t)
	w.append(1, 1, 1, 1, 1)
	expect.NoError(t, w.s.PutSubscription(t.Context(), storage.Subscription{
		Name: "s", SubscriptionSource: storage.SubscriptionSource{Kinds: []messages.WSKind{testKind}},
	}))
	return r, w
}

// sameSubscriptions makes sure that all nodes have the same subscriptions, and returns them.
func (r *replicas) sameSubscriptions(t *testing.T, of *Store) (want []storage.Subscription) {
	t.Helper()
	want, err := storagetest.WholeSubscriptions(t.Context(), of)
	expect.NoError(t, err)
	for _, n := range r.nodes {
		// A node that was opened may have the events already, and gets the changes again.
		for n.store.replica.head.Load() < of.replica.head.Load() || n.store.subscriptions.Last() < of.subscriptions.Last() {
			runtime.Gosched()
			expect.NoError(t, t.Context().Err())
		}
		expect.NoError(t, n.store.subscriptions.AwaitTaken(t.Context()))
		got, err := storagetest.WholeSubscriptions(replog.Local(t.Context()), n.store)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("node %s: got %+v, %v\nwant %+v", n.id, got, err, want)
		}
	}
	return want
}

func positionOf(t *testing.T, s *Store) uint64 {
	t.Helper()
	sub, err := s.Subscription(t.Context(), "s")
	expect.NoError(t, err)
	return sub.Position(0)
}

// A subscription goes on where it stood, whoever leads, with what it has parked; and nobody who does not lead moves it.
func TestSubscriptionMovesWithItsOwner(t *testing.T) {
	r, w := subscribingThree(t)
	ctx := t.Context()
	m := moveTo("s", 0, 5)
	m.Park = []storage.ParkedEvent{{Partition: 0, Offset: 2, Reason: "no", Tries: 1}}
	expect.NoError(t, w.s.MoveSubscription(ctx, m))
	want := r.sameSubscriptions(t, w.s)
	expect.Equal(t, 5, want[0].Position(0))
	expect.Equal(t, 1, len(want[0].Parked))

	follower := r.nodes[1].store
	expect.ErrorIs(t, follower.MoveSubscription(ctx, moveTo("s", 0, 6)), replog.ErrNotOwner)
	expect.ErrorIs(t, follower.MoveSubscription(ctx, moveTo("unknown there, perhaps", 0, 6)), replog.ErrNotOwner)
	expect.ErrorIs(t, follower.PutSubscription(ctx, want[0]), replog.ErrNotOwner)
	_, err := follower.Subscription(ctx, "s")
	expect.ErrorIs(t, err, replog.ErrNotOwner)
	_, err = follower.SubscriptionNames(ctx)
	expect.ErrorIs(t, err, replog.ErrNotOwner)
	_, err = follower.ParkedEvents(ctx, "s", storage.ParkedEvent{}, 1)
	expect.ErrorIs(t, err, replog.ErrNotOwner)

	next := r.lead(t, 1)
	expect.Equal(t, 5, positionOf(t, next))
	takeOver(t, next, 0).append(1)
	expect.NoError(t, next.MoveSubscription(ctx, moveTo("s", 0, 8)))
	r.sameSubscriptions(t, next)
	expect.ErrorIs(t, w.s.MoveSubscription(ctx, moveTo("s", 0, 6)), replog.ErrNotOwner)
	expect.NoError(t, r.lead(t, 2).DeleteSubscription(ctx, "s"))
	expect.Equal(t, 0, len(r.sameSubscriptions(t, r.nodes[2].store)))
	r.stop(t)
	for _, n := range r.nodes {
		report, err := Verify(ctx, n.dir, verify.Options{})
		expect.NoError(t, err)
		expect.NoError(t, report.Err())
	}
}

// A move of which nobody knows is there or not once the next owner has taken an epoch.
func TestUnknownMove(t *testing.T) {
	for fate, want := range map[memory.Fate]uint64{memory.Kept: 3, memory.Lost: 1, memory.Late: 1} {
		t.Run(fate.String(), func(t *testing.T) {
			r, w := subscribingThree(t)
			r.cluster.Doom("a", fate)
			expect.ErrorIs(t, w.s.MoveSubscription(t.Context(), moveTo("s", 0, 3)), messages.ErrOutcomeUnknown)
			next := r.lead(t, 1)
			takeOver(t, next, 0)
			r.cluster.Release()
			expect.Equal(t, want, positionOf(t, next))
			// Its store is as good as before.
			s := r.lead(t, 0)
			takeOver(t, s, 0)
			expect.NoError(t, s.MoveSubscription(t.Context(), moveTo("s", 0, 4)))
			r.sameSubscriptions(t, s)
		})
	}
}

// What was judged before somebody else has changed subscriptions is refused.
func TestChangesAreJudgedByTheLast(t *testing.T) {
	r, w := subscribingThree(t)
	judged := w.s.subscriptions.Last()
	next := r.lead(t, 1)
	expect.NoError(t, next.MoveSubscription(t.Context(), moveTo("s", 0, 3)))
	s := r.lead(t, 0)
	expect.ErrorIs(t, s.replica.propose(s.replica.head.Load()-1, &format.Entry{Changes: subsChanges()}), replog.ErrMoved)
	expect.ErrorIs(t, proposer{s.replica}.Propose(keeper.Proposed{Changes: subsChanges(), Judged: judged}), replog.ErrMoved)
	expect.Equal(t, 3, positionOf(t, s))
}

func subsChanges() []format.Change {
	return []format.Change{{Bucket: format.BucketPositions, Key: []byte("key")}}
}

// A node whose log.db has entries that its subscriptions.db has not gets those again when it comes back, however it ended.
func TestChangesComeBack(t *testing.T) {
	r, w := subscribingThree(t)
	d := w.s.Descriptor()
	expect.NoError(t, w.s.MoveSubscription(t.Context(), moveTo("s", 0, 2)))
	r.sameSubscriptions(t, w.s)
	for round, crashes := range []bool{false, true} {
		back := r.nodes[2]
		faulty.CommitsOf(back.store.files.Subscriptions.Load()).Before.Fail(errNoSpace)
		missed := moveTo("s", 0, uint64(3+2*round))
		missed.Park = []storage.ParkedEvent{{Partition: 0, Offset: uint64(1 + round)}}
		expect.NoError(t, w.s.MoveSubscription(t.Context(), missed))
		w.append(1)
		r.caughtUp(t, w.s)
		expect.NoError(t, back.store.log.AwaitEntry(t.Context(), w.s.replica.head.Load()))
		expect.ErrorIs(t, back.store.subscriptions.AwaitTaken(t.Context()), storage.ErrFull)
		crashed := quietCopy(t, back.store, back.dir)
		r.close(t, back)
		if crashes {
			back.dir = crashed
		}
		expect.NoError(t, w.s.MoveSubscription(t.Context(), moveTo("s", 0, uint64(4+2*round))))
		r.open(t, back, d)
		r.sameSubscriptions(t, w.s)
		w.append(1)
		r.same(t, w.s, 6+2*(round+1))
		expect.Equal(t, uint64(4+2*round), positionOf(t, r.lead(t, 2)))
		r.lead(t, 0)
		w = takeOver(t, w.s, 0)
	}
}

// A replica that cannot write subscriptions.db stops when too much waits, and has all when it comes back.
func TestBacklogIsBounded(t *testing.T) {
	const events = 512
	r, w := subscribingThree(t)
	w.appendMany(events, 1)
	r.sameSubscriptions(t, w.s)
	stuck := r.nodes[2]
	faulty.CommitsOf(stuck.store.files.Subscriptions.Load()).Before.Fail(errNoSpace)
	large := storage.Subscription{
		Name: "large", SubscriptionSource: storage.SubscriptionSource{Partition: new(messages.PartitionID(0))},
		Next: map[messages.PartitionID]uint64{0: events},
	}
	for i := range uint64(events - 1) {
		large.Parked = append(large.Parked, storage.ParkedEvent{Partition: 0, Offset: i + 1, Reason: strings.Repeat("no! ", storage.MaxSubscriptionReason/4)})
	}
	var stopped error
	for range 100 {
		expect.NoError(t, w.s.PutSubscription(t.Context(), large))
		expect.NoError(t, w.s.DeleteSubscription(t.Context(), "large"))
		w.append(1)
		now, _ := stuck.log.Leadership()
		if stopped = now.Stopped; stopped != nil {
			break
		}
	}
	expect.ErrorIs(t, stopped, storage.ErrFull)
	d := w.s.Descriptor()
	r.close(t, stuck)
	r.open(t, stuck, d)
	r.sameSubscriptions(t, w.s)
}

// A backup of a replica may be made one of another log: what its subscriptions.db says of the old one is forgotten.
func TestSubscriptionsOfAnotherLog(t *testing.T) {
	r, w := subscribingThree(t)
	for next := range uint64(5) {
		expect.NoError(t, w.s.MoveSubscription(t.Context(), moveTo("s", 0, next+2)))
	}
	dir := t.TempDir() + "/backup"
	_, err := w.s.Backup(t.Context(), dir, CopyOptions{})
	expect.NoError(t, err)
	d := w.s.Descriptor()
	r.stop(t)

	other := &replicas{cluster: memory.NewCluster(8, "a"), nodes: []*replicaNode{{id: "a", dir: dir}}}
	other.start(t, d)
	s := other.lead(t, 0)
	expect.Equal(t, 6, positionOf(t, s))
	expect.NoError(t, s.MoveSubscription(t.Context(), moveTo("s", 0, 1)))
	expect.Equal(t, 1, positionOf(t, s))
}
