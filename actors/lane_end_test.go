package actors_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/internal/subscription"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const follower = "follower"

// newFollowed returns a store with so many events in partition 0, and a subscription that has
// none of them yet.
func newFollowed(t *testing.T, events int) *storagetest.Memory {
	t.Helper()
	d := messages.Descriptor{Application: "lanes", Partitions: 1, Kinds: []messages.Kind{{ID: 1, Name: "kind"}}}
	store, err := storagetest.NewMemory(d)
	noError(t, err)
	ctx := t.Context()
	register, err := store.TakeEpoch(ctx, 0)
	noError(t, err)
	for i := range events {
		e := messages.Event{
			Kind: messages.EventBusiness, Epoch: register.Epoch, PLogOffset: messages.PLogOffset(i + 1),
			WorkspaceKind: 1, WLogOffset: messages.WLogOffset(i + 1), RegisteredAt: 1, Body: fmt.Append(nil, i),
		}
		noError(t, store.Append(ctx, storage.Batch{Epoch: register.Epoch, Events: []messages.Event{e}}))
	}
	noError(t, store.PutSubscription(ctx, storage.Subscription{Name: follower}))
	return store
}

// spawnLane starts a lane that gives up after the first try.
func spawnLane(t *testing.T, h *house, store actors.LaneStore, watch actors.Observer, handler actors.BatchHandler) *actors.Lane {
	t.Helper()
	lane, err := actors.SpawnLane(laneConfig(h, store, watch, handler), h.ports)
	noError(t, err)
	return lane
}

func laneConfig(h *house, store actors.LaneStore, watch actors.Observer, handler actors.BatchHandler) actors.LaneConfig {
	return actors.LaneConfig{
		Key: actors.Key{Group: "lane", ID: "0"}, Name: "lane" + h.system.ProcessRegistry.NextId(),
		Lane:         subscription.Config{MinDelay: time.Millisecond, MaxDelay: time.Millisecond, MaxTries: 1},
		Subscription: follower, Batch: 1, Bytes: 1, HandlerLimit: time.Minute, Handler: handler, Store: store,
		System: h.system, Guardian: actors.NewGuardian(actors.RestartPolicy{}, nil), Dispatcher: h.dispatcher,
		Clock: actors.SystemClock(), Logger: zap.NewNop(), Observer: watch, Alert: func() {},
	}
}

// stoppedAndLost ends a lane's incarnation when it is to learn that it has stopped the
// subscription.
type stoppedAndLost struct{ once sync.Once }

func (*stoppedAndLost) Posted(actors.Key, any)  {}
func (*stoppedAndLost) Handled(actors.Key, any) {}

func (s *stoppedAndLost) Taken(k actors.Key, message any) {
	if _, stored := message.(*messages.PositionStored); stored && k.Group == "lane" {
		s.once.Do(func() { panic("injected") })
	}
}

// A lane that has stopped the subscription, and dies before it can say so, says it when it has
// been restarted: the other lanes would go on.
func TestStopThatWasNotTold(t *testing.T) {
	h, store := newHouse(t), newFollowed(t, 1)
	c := laneConfig(h, store, &stoppedAndLost{}, func(context.Context, []messages.LogEvent) error { return errAny })
	told := make(chan struct{}, 1)
	c.Lane.StopOnPoison, c.Alert = true, func() { told <- struct{}{} }
	lane, err := actors.SpawnLane(c, h.ports)
	noError(t, err)
	next(t, told)
	noError(t, lane.Stop(t.Context(), time.Minute))
}

// A batch is bounded by what its events take in memory, numbers too.
func TestBatchIsBoundedInMemory(t *testing.T) {
	h, store := newHouse(t), newFollowed(t, 3)
	numbers := make([]messages.SequenceNumber, 1000)
	c := laneConfig(h, numberedStore{store, numbers}, nil, nil)
	sizes := make(chan int, 3)
	c.Batch, c.Bytes = 3, 1000
	c.Handler = func(_ context.Context, events []messages.LogEvent) error {
		sizes <- len(events)
		return nil
	}
	lane, err := actors.SpawnLane(c, h.ports)
	noError(t, err)
	for range 3 {
		if got := next(t, sizes); got != 1 {
			t.Errorf("got a batch of %d events, want 1", got)
		}
	}
	noError(t, lane.Stop(t.Context(), time.Minute))
}

// numberedStore gives numbers to the events that it reads.
type numberedStore struct {
	*storagetest.Memory
	numbers []messages.SequenceNumber
}

func (s numberedStore) PLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		for e, err := range s.Memory.PLog(ctx, p, from) {
			e.Numbers = s.numbers
			if !yield(e, err) {
				return
			}
		}
	}
}

// A handler that ends its goroutine, as a failed assertion does, has failed: the lane goes on.
func TestHandlerThatExits(t *testing.T) {
	h, store := newHouse(t), newFollowed(t, 2)
	handled := make(chan struct{}, 1)
	lane := spawnLane(t, h, store, nil, func(_ context.Context, events []messages.LogEvent) error {
		if events[0].Offset == 1 {
			runtime.Goexit()
		}
		handled <- struct{}{}
		return nil
	})
	next(t, handled)
	noError(t, lane.Stop(t.Context(), time.Minute))
	now, err := storagetest.WholeSubscription(t.Context(), store, follower)
	noError(t, err)
	if len(now.Parked) != 1 || now.Parked[0].Offset != 1 || now.Parked[0].Reason != actors.ErrHandlerExit.Error() {
		t.Errorf("got %+v parked, want offset 1: %v", now.Parked, actors.ErrHandlerExit)
	}
}

// ends gets a value when a lane has taken the order to stop.
type ends chan struct{}

func (ends) Posted(actors.Key, any) {}
func (ends) Taken(actors.Key, any)  {}

func (e ends) Handled(k actors.Key, message any) {
	if _, stop := message.(*actor.Stop); stop && k.Group == "lane" {
		e <- struct{}{}
	}
}

// Whoever asks a lane that waits for its handler to end, after a stop has given that up, is told
// that it has stopped, and does not wait for an answer that nobody will give.
func TestLaneThatEndsAnswers(t *testing.T) {
	h, store, watch := newHouse(t), newFollowed(t, 1), make(ends, 1)
	handling, release := make(chan struct{}), make(chan struct{})
	lane := spawnLane(t, h, store, watch, func(context.Context, []messages.LogEvent) error {
		close(handling)
		<-release
		return nil
	})
	next(t, handling)
	stopped := make(chan error, 1)
	go func() { stopped <- lane.Stop(t.Context(), 0) }()
	next(t, watch)
	held := make(chan error, 1)
	go func() { held <- lane.Hold(t.Context()) }()
	if err := next(t, held); !errors.Is(err, messages.ErrStopped) {
		t.Errorf("Hold: got %v, want %v", err, messages.ErrStopped)
	}
	close(release)
	if err := next(t, stopped); !errors.Is(err, actors.ErrBrokenOff) {
		t.Errorf("Stop: got %v, want %v", err, actors.ErrBrokenOff)
	}
}
