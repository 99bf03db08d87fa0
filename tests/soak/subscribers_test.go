package soak

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/tests/internal/delivered"
)

// The subscriptions: of everything and of the busiest workspace as fast as it goes, of a
// partition whose handler takes its time, and of one whose handler refuses some events.
const (
	readsAll  = "all"
	readsBusy = "busy"
	readsSlow = "slow"
	readsBad  = "bad"

	slowPartition = messages.PartitionID(5)
	badPartition  = messages.PartitionID(9)
	// slowness is how long the slow handler takes for a batch of so many events.
	slowness  = 20 * time.Millisecond
	slowBatch = 8
)

// subscribers are the subscriptions of a store over its whole life.
type subscribers struct {
	run *run

	mu   sync.Mutex
	book *delivered.Book
}

func newSubscribers(r *run) *subscribers { return &subscribers{run: r, book: delivered.NewBook()} }

var errPoison = errors.New("poison")

// poisonous reports whether an event is one that the handler of the bad ones refuses.
func poisonous(e *messages.Event) bool { return e.PLogOffset%50 == 7 }

// subscribe starts all in a deployment.
func (s *subscribers) subscribe(t *testing.T, d *deployment) {
	t.Helper()
	s.crashed()
	take := func(context.Context, *partition.DeliveredEvent) error { return nil }
	refuse := func(_ context.Context, e *partition.DeliveredEvent) error {
		if poisonous(&e.Event) {
			return errPoison
		}
		return nil
	}
	for _, c := range []partition.SubscriptionConfig{
		{Name: readsAll, Handler: s.handler(d, 0, take)},
		{Name: readsBusy, Workspace: new(messages.WSID), Handler: s.handler(d, 0, take)},
		{Name: readsSlow, Partition: new(slowPartition), Batch: slowBatch, Handler: s.handler(d, slowness, take)},
		{Name: readsBad, Partition: new(badPartition), MaxTries: 2, Handler: s.handler(d, 0, refuse)},
	} {
		c.MinDelay, c.MaxDelay = time.Millisecond, 50*time.Millisecond
		must(t, bounded(func(ctx context.Context) error {
			_, err := d.app.Subscribe(ctx, c)
			return err
		}))
	}
}

// crashed notes that what was handled last may be delivered again.
func (s *subscribers) crashed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book.Crashed()
}

// handler notes what became of each batch.
func (s *subscribers) handler(d *deployment, takes time.Duration, do func(context.Context, *partition.DeliveredEvent) error) partition.DeliveryHandler {
	return func(ctx context.Context, batch partition.Delivery) (err error) {
		if takes > 0 {
			wait(ctx, takes)
		}
		call := delivered.Call{
			Log:   delivered.Log{Subscription: batch.Subscription, Partition: batch.Partition},
			First: batch.Events[0].Offset, Count: uint64(len(batch.Events)), Parks: batch.Subscription == readsBad,
		}
		for i := range batch.Events {
			if want := call.First + uint64(i); batch.Events[i].Offset != want {
				s.run.troublef("%v: got offset %d within a batch, want %d", call.Log, batch.Events[i].Offset, want)
			}
			if err = do(ctx, &batch.Events[i]); err != nil {
				err = &partition.BatchError{Index: i, Err: err}
				break
			}
			call.Handled++
		}
		// Where a position cannot be stored for a while, the lane may have to begin anew.
		s.called(call, d.faulty != nil)
		return err
	}
}

func (s *subscribers) called(call delivered.Call, suffers bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if suffers {
		s.book.Crashed()
	}
	events, repeated := s.book.Events, s.book.Repeated
	if err := s.book.Called(call); err != nil {
		s.run.troublef("%v", err)
	}
	s.run.count(handled, int(s.book.Events-events))
	s.run.count(handledAgain, int(s.book.Repeated-repeated))
}

// catchUp lets the subscriptions deliver what there is, over a store that works, and ends
// the process.
func (l *load) catchUp(t *testing.T) {
	t.Helper()
	if l.process != nil {
		l.process.end(t, l.run)
	}
	l.process = startProcess(t, l.run, l.dir)
	d := l.process.deploy(t, l.run)
	must(t, bounded(func(ctx context.Context) error { return l.clients[0].useUp(ctx, d) }))
	l.subscribers.subscribe(t, d)
	must(t, bounded(func(ctx context.Context) error {
		for _, s := range d.app.Subscriptions() {
			for status, err := s.Status(ctx); status.Lag > 0 || err != nil; status, err = s.Status(ctx) {
				if err := errors.Join(err, ctx.Err()); err != nil {
					return fmt.Errorf("subscription %s, %d events behind: %w", s.Name(), status.Lag, err)
				}
				wait(ctx, 20*time.Millisecond)
			}
			if err := s.Pause(ctx); err != nil { // so that it is stored
				return err
			}
		}
		return nil
	}))
	l.undeployed(t, d.undeploy())
	l.process.end(t, l.run)
	l.process = nil
}

// compare checks that all subscriptions stand at the ends of their logs, and that exactly
// what was refused is parked. It returns what is wrong.
func (s *subscribers) compare(ctx context.Context, store *bolt.Store) (faults []error) {
	all, err := storagetest.WholeSubscriptions(ctx, store)
	if err != nil || len(all) != 4 {
		return []error{fmt.Errorf("got %d subscriptions, want 4: %w", len(all), err)}
	}
	for i := range all {
		faults = append(faults, s.compareOne(ctx, store, &all[i])...)
	}
	return faults
}

func (s *subscribers) compareOne(ctx context.Context, store *bolt.Store, sub *storage.Subscription) (faults []error) {
	descriptor := store.Descriptor()
	refused := 0
	for p := range messages.PartitionID(partitions) {
		if !sub.Reads(&descriptor, p) {
			continue
		}
		end := uint64(0)
		for e, err := range logOf(ctx, store, sub, p) {
			if err != nil {
				return append(faults, err)
			}
			end++
			if sub.Name == readsBad && poisonous(&e) {
				refused++
			}
		}
		log := delivered.Log{Subscription: sub.Name, Partition: p}
		if next := sub.Position(p); next != end+1 {
			faults = append(faults, fmt.Errorf("%v: it stands at offset %d, the log ends at %d", log, next, end))
		}
		if err := s.book.Stands(log, sub.Position(p)); err != nil {
			faults = append(faults, err)
		}
		s.run.count(positions, 1)
	}
	for _, e := range sub.Parked {
		if !poisonous(&messages.Event{PLogOffset: messages.PLogOffset(e.Offset)}) {
			faults = append(faults, fmt.Errorf("subscription %s: got parked %+v", sub.Name, e))
		}
	}
	if len(sub.Parked) != refused {
		faults = append(faults, fmt.Errorf("subscription %s: got %d parked events, want %d", sub.Name, len(sub.Parked), refused))
	}
	s.run.count(parked, len(sub.Parked))
	return faults
}

func logOf(ctx context.Context, store *bolt.Store, sub *storage.Subscription, p messages.PartitionID) iter.Seq2[messages.Event, error] {
	if sub.Workspace != nil {
		return store.WLog(ctx, *sub.Workspace, 1)
	}
	return store.PLog(ctx, p, 1)
}
