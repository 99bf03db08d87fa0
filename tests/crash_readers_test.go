package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/tests/internal/delivered"
)

// The subscriptions of the crash tests.
const (
	// readsPartition, readsWorkspace and readsAll have an effect outside the store: a line of
	// the journal, which another process keeps. The last one refuses some events, and parks them.
	readsPartition = "partition"
	readsWorkspace = "workspace"
	readsAll       = "all"
	// copies appends each event of a partition to a workspace, with the delivery's id.
	copies = "copies"

	readPartition   = messages.PartitionID(5)
	readWorkspace   = messages.WSID(7)
	copiedPartition = messages.PartitionID(3)
	// copyWorkspace is in none of the partitions that are read alone, and nobody else's.
	copyWorkspace = messages.WSID(crashPartitions * 1_000_000)

	readerBatch = 32
)

// readers are the subscriptions of a deployment.
type readers struct {
	app     *partition.App
	journal journal
	all     []*partition.Subscription
}

func (r *readers) configs() []partition.SubscriptionConfig {
	configs := []partition.SubscriptionConfig{
		{Name: copies, Partition: new(copiedPartition), MaxTries: 1 << 30, Handler: r.handler(r.copy)},
		{Name: readsPartition, Partition: new(readPartition), Handler: r.handler(nothingElse)},
		{Name: readsWorkspace, Workspace: new(readWorkspace), Handler: r.handler(nothingElse)},
		{Name: readsAll, MaxTries: 2, Handler: r.handler(refusePoison)},
	}
	for i := range configs {
		c := &configs[i]
		c.Batch, c.MinDelay, c.MaxDelay = readerBatch, time.Millisecond, 10*time.Millisecond
	}
	return configs
}

// subscribe starts all, and those that were paused when the process died go on.
func (r *readers) subscribe(ctx context.Context) error {
	for _, c := range r.configs() {
		s, err := r.app.Subscribe(ctx, c)
		if err != nil {
			return fmt.Errorf("subscription %s: %w", c.Name, err)
		}
		r.all = append(r.all, s)
		r.journal.write(entry{Subscribed: c.Name})
		status, err := s.Status(ctx)
		if err == nil && status.Stopped != "" {
			err = r.resume(ctx, s)
		}
		if err != nil {
			return fmt.Errorf("subscription %s: %w", c.Name, err)
		}
	}
	return nil
}

// handler journals what became of each batch, behind its effects.
func (r *readers) handler(effect func(context.Context, *partition.DeliveredEvent) error) partition.DeliveryHandler {
	return func(ctx context.Context, d partition.Delivery) error {
		call := &delivered.Call{
			Log:   delivered.Log{Subscription: d.Subscription, Partition: d.Partition},
			First: d.Events[0].Offset, Count: uint64(len(d.Events)), Parks: d.Subscription == readsAll,
		}
		var failed error
		for i := range d.Events {
			if want := call.First + uint64(i); d.Events[i].Offset != want {
				r.journal.write(entry{Trouble: fmt.Sprintf("%v: got offset %d within a batch, want %d", call.Log, d.Events[i].Offset, want)})
			}
			if failed = effect(ctx, &d.Events[i]); failed != nil {
				failed = &partition.BatchError{Index: i, Err: failed}
				break
			}
			call.Handled++
		}
		r.journal.write(entry{Called: call})
		return failed
	}
}

func nothingElse(context.Context, *partition.DeliveredEvent) error { return nil }

var errPoison = errors.New("poison")

// poisonous reports whether an event is one that nobody can handle.
func poisonous(e *messages.Event) bool { return e.WLogOffset%11 == 3 }

func refusePoison(_ context.Context, e *partition.DeliveredEvent) error {
	if poisonous(&e.Event) {
		return errPoison
	}
	return nil
}

// copyBody names the event that is copied.
func copyBody(offset messages.PLogOffset) string {
	return fmt.Sprintf("copy of %d/%d", copiedPartition, offset)
}

func (r *readers) copy(ctx context.Context, e *partition.DeliveredEvent) error {
	sequencer, err := r.app.SequencerOf(copyWorkspace)
	if err != nil {
		return err
	}
	to := partition.AppendTo{Workspace: copyWorkspace, Kind: kindShop, DedupID: e.DedupID, Wait: true}
	_, err = sequencer.Append(ctx, to, partition.Draft{Wanted: []messages.Wanted{{Seq: seqReceipt}}, Body: []byte(copyBody(e.PLogOffset))})
	return err
}

// operate pauses, rewinds and resumes now and then, until ctx ends.
func (r *readers) operate(ctx context.Context, random *rand.Rand) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		s := r.all[random.IntN(len(r.all))]
		r.journal.write(entry{Holding: 1})
		err := r.hold(ctx, s, random)
		r.journal.write(entry{Holding: -1})
		if err != nil && ctx.Err() == nil {
			r.journal.write(entry{Trouble: fmt.Sprintf("subscription %s: %v", s.Name(), err)})
		}
	}
}

// hold pauses a subscription, rewinds it perhaps, and resumes it.
func (r *readers) hold(ctx context.Context, s *partition.Subscription, random *rand.Rand) error {
	if err := r.pause(ctx, s); err != nil {
		return err
	}
	if random.IntN(2) == 0 {
		status, err := s.Status(ctx)
		if err != nil {
			return err
		}
		lane := status.Lanes[random.IntN(len(status.Lanes))]
		to := lane.Next - min(lane.Next-1, random.Uint64N(3*readerBatch))
		r.changed(s, delivered.Moving, lane.Partition, to)
		if err := s.Rewind(ctx, lane.Partition, to); err != nil {
			return err
		}
		r.changed(s, delivered.Moved, lane.Partition, to)
	}
	return r.resume(ctx, s)
}

// changed journals a step.
func (r *readers) changed(s *partition.Subscription, step delivered.Step, p messages.PartitionID, to uint64) {
	log := delivered.Log{Subscription: s.Name(), Partition: p}
	r.journal.write(entry{Changed: &delivered.Change{Log: log, Step: step, To: to}})
}

func (r *readers) pause(ctx context.Context, s *partition.Subscription) error {
	err := s.Pause(ctx)
	if err == nil {
		r.changed(s, delivered.Paused, 0, 0)
	}
	return err
}

func (r *readers) resume(ctx context.Context, s *partition.Subscription) error {
	r.changed(s, delivered.Resuming, 0, 0)
	return s.Resume(ctx)
}

// watchedLane is where the copies are made, which takes a while.
var watchedLane = actors.Key{Group: "deliverer", ID: fmt.Sprintf("%s/%d", copies, copiedPartition)}

// deliveries is an observer that journals what that lane is doing.
type deliveries struct{ journal journal }

func (deliveries) Posted(actors.Key, any) {}

func (d deliveries) Taken(key actors.Key, message any) { d.tell(key, message, 1) }

func (d deliveries) Handled(key actors.Key, message any) { d.tell(key, message, -1) }

func (d deliveries) tell(key actors.Key, message any, change int) {
	if key != watchedLane {
		return
	}
	switch message.(type) {
	case *messages.HandleBatch:
		d.journal.write(entry{Delivering: change})
	case *messages.StorePosition:
		d.journal.write(entry{Storing: change})
	}
}

// readersTally counts what was checked of subscriptions.
type readersTally struct {
	positions, parked, copied int
	caughtUp                  int
	events, repeated          uint64
	paused, rewound           int
}

func (r *readersTally) String() string {
	return fmt.Sprintf("positions=%d caught-up=%d delivered=%d repeated=%d parked=%d copies=%d pauses=%d rewinds=%d lost=0",
		r.positions, r.caughtUp, r.events, r.repeated, r.parked, r.copied, r.paused, r.rewound)
}

// compareReaders checks where the subscriptions stand that a child has made. CaughtUp says
// that everything was delivered since.
func (l *ledger) compareReaders(t testing.TB, store storage.Store, caughtUp bool) {
	t.Helper()
	for name := range l.subscribed {
		s, err := storagetest.WholeSubscription(limit(t), store.(storage.Subscriptions), name)
		if err != nil {
			t.Errorf("subscription %s: %v", name, err)
			continue
		}
		for p := range messages.PartitionID(store.Descriptor().Partitions) {
			descriptor := store.Descriptor()
			if s.Reads(&descriptor, p) {
				l.compareLane(t, store, &s, p, caughtUp)
			}
		}
		if name == copies {
			l.compareCopies(t, store, s.Position(copiedPartition), caughtUp)
		}
	}
}

// compareLane checks that a position is one that the handler's calls allow, and that all
// events before it which were not handled are parked.
func (l *ledger) compareLane(t testing.TB, store storage.Store, s *storage.Subscription, p messages.PartitionID, caughtUp bool) {
	t.Helper()
	log := delivered.Log{Subscription: s.Name, Partition: p}
	next := s.Position(p)
	if err := l.book.Stands(log, next); err != nil {
		t.Error(err)
	}
	parked := make(map[uint64]bool)
	for _, e := range s.Parked {
		if e.Partition == p {
			parked[e.Offset] = true
			if !strings.Contains(e.Reason, errPoison.Error()) || e.Tries < 2 {
				t.Errorf("%v: got parked %+v", log, e)
			}
		}
	}
	end := uint64(0)
	for e, err := range logOf(t, store, s, p) {
		check(t, err)
		end++
		if want := s.Name == readsAll && poisonous(&e) && end < next; parked[end] != want {
			t.Errorf("%v, offset %d: got parked %v, want %v: it stands at %d", log, end, parked[end], want, next)
		}
	}
	if caughtUp && next != end+1 {
		t.Errorf("%v: got position %d, the log ends at %d", log, next, end)
	}
	l.readers.positions++
	l.readers.parked += len(parked)
}

func logOf(t testing.TB, store storage.Store, s *storage.Subscription, p messages.PartitionID) func(func(messages.Event, error) bool) {
	t.Helper()
	if s.Workspace != nil {
		return store.WLog(limit(t), *s.Workspace, 1)
	}
	return store.PLog(limit(t), p, 1)
}

// compareCopies checks that each event before a position has its copy, in order and once;
// those of one batch more may have theirs.
func (l *ledger) compareCopies(t testing.TB, store storage.Store, next uint64, caughtUp bool) {
	t.Helper()
	n := uint64(0)
	for e, err := range store.WLog(limit(t), copyWorkspace, 1) {
		check(t, err)
		n++
		if want := copyBody(messages.PLogOffset(n)); string(e.Body) != want || e.Numbers[0].Number != messages.Number(999+n) {
			t.Errorf("copy %d: got %s with %v, want %s", n, e.Body, e.Numbers, want)
		}
	}
	switch {
	case n < l.copied || n+1 < next:
		t.Errorf("got %d copies, %d were made, and the position is %d", n, l.copied, next)
	case n > l.copied+readerBatch:
		t.Errorf("got %d copies, want at most a batch more than %d", n, l.copied)
	case caughtUp && n+1 != next:
		t.Errorf("got %d copies, want those before %d", n, next)
	}
	l.readers.copied += int(n)
}

// notes keep a journal until it is read.
type notes chan entry

func (n notes) write(e entry) { n <- e }

// deliverAll lets a deployment deliver what there is, and checks that nothing is left out.
func (c *crash) deliverAll(t testing.TB, d *deployment) {
	t.Helper()
	c.write(entry{Phase: "opening"})
	kept, done := make(notes), make(chan struct{})
	r := &readers{app: d.app, journal: kept}
	go func() {
		defer close(done)
		for e := range kept {
			c.write(e)
		}
	}()
	check(t, r.subscribe(limit(t)))
	for _, s := range r.all {
		c.await(t, "everything is delivered to "+s.Name(), func() bool { return must(s.Status(limit(t)))(t).Lag == 0 })
	}
	for _, s := range r.all { // so that it is stored
		check(t, r.pause(limit(t), s))
	}
	for _, s := range r.all {
		check(t, s.End(limit(t)))
	}
	close(kept)
	<-done
	c.compareReaders(t, d.store, true)
	c.write(entry{Phase: "stopped"})
	c.readers.caughtUp++
}
