package storagetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// checkMoveRace: subscriptions that move at the same time do not touch each other; each
// shows its moves in their order while it is read.
func checkMoveRace(e *env) {
	const many = 40
	s := e.subscribing()
	name := func(i int) string { return fmt.Sprintf("s%02d", i) }
	var group sync.WaitGroup
	errs := make(chan error, many)
	for i := range many {
		group.Go(func() { errs <- e.moveAlone(s, name(i)) })
	}
	group.Wait()
	for range many {
		if err := <-errs; err != nil {
			e.Errorf("%v", err)
		}
	}
	e.reopen()
	var want []storage.Subscription
	for i := range many {
		sub := ofPartition(name(i), 0)
		sub.Next = positions{0: 6}
		sub.Parked = []storage.ParkedEvent{{Partition: 0, Offset: 5, Reason: name(i)}}
		want = append(want, sub)
	}
	e.subscribed("after all moves", want...)
}

// moveAlone makes a subscription and moves it to the end, step by step, with one event
// parked at a time.
func (e *env) moveAlone(s storage.Subscriptions, name string) error {
	if err := s.PutSubscription(e.Context(), ofPartition(name, 0)); err != nil {
		return fmt.Errorf("put %s: %w", name, err)
	}
	var before []storage.ParkedEvent
	for next := uint64(2); next <= 6; next++ {
		parked := []storage.ParkedEvent{{Partition: 0, Offset: next - 1, Reason: name}}
		m := storage.SubscriptionMove{Name: name, Next: positions{0: next}, Unpark: before, Park: parked}
		if err := s.MoveSubscription(e.Context(), m); err != nil {
			return fmt.Errorf("move %s to %d: %w", name, next, err)
		}
		got, err := WholeSubscription(e.Context(), s, name)
		if err != nil {
			return fmt.Errorf("read %s at %d: %w", name, next, err)
		}
		if got.Position(0) != next || !slices.Equal(got.Parked, parked) {
			return fmt.Errorf("%s at %d: got %+v", name, next, got)
		}
		before = parked
	}
	return nil
}

// checkSubscriptionModel: random operations have the same outcomes as those of a [Memory],
// which keeps subscriptions in the simplest way.
func checkSubscriptionModel(e *env) {
	e.subscribing()
	model, err := NewMemory(e.desc)
	if err != nil {
		e.Fatalf("model: %v", err)
	}
	for id, p := range e.parts {
		q := Take(e, model, id)
		for event, err := range e.store.PLog(e.Context(), id, 1) {
			if err != nil {
				e.Fatalf("read: %v", err)
			}
			q.Append(e, Spec{Workspace: event.Workspace})
		}
		if q.Last() != p.Last() {
			e.Fatalf("partition %d: got %d events in the model, want %d", id, q.Last(), p.Last())
		}
	}
	random := rand.New(rand.NewPCG(5, 2026))
	for i := range 400 {
		what, do := randomChange(random)
		got, want := do(e, e.subscriptions()), do(e, model)
		if (got == nil) != (want == nil) {
			e.Fatalf("operation %d, %s: got %v, want %v", i, what, got, want)
		}
		if i%100 == 99 {
			e.reopen()
		}
		all, err := WholeSubscriptions(e.Context(), model)
		if err != nil {
			e.Fatalf("model: %v", err)
		}
		e.subscribed(fmt.Sprintf("operation %d, %s", i, what), all...)
	}
}

// randomChange returns one change of one of a few subscriptions, which may be refused.
func randomChange(r *rand.Rand) (what string, do func(*env, storage.Subscriptions) error) {
	names := []string{"a", "a b", "ab", "b"}
	name := names[r.IntN(len(names))]
	switch n := r.IntN(20); {
	case n == 0:
		return "delete " + name, func(e *env, s storage.Subscriptions) error { return s.DeleteSubscription(e.Context(), name) }
	case n < 4:
		sub := storage.Subscription{Name: name, Next: randomPositions(r), Parked: randomEvents(r)}
		if name == "b" {
			sub = ofWorkspace(name, 3)
			sub.Next = positions{0: 1 + r.Uint64N(4)}
		}
		return fmt.Sprintf("put %+v", sub), func(e *env, s storage.Subscriptions) error { return s.PutSubscription(e.Context(), sub) }
	}
	m := storage.SubscriptionMove{Name: name, Next: randomPositions(r), Park: randomEvents(r), Unpark: randomEvents(r)}
	if r.IntN(4) == 0 {
		m.Stopped = new([]string{"", "paused"}[r.IntN(2)])
	}
	return fmt.Sprintf("move %+v", m), func(e *env, s storage.Subscriptions) error { return s.MoveSubscription(e.Context(), m) }
}

func randomPositions(r *rand.Rand) positions {
	next := make(positions)
	for range r.IntN(3) {
		next[messages.PartitionID(r.IntN(2))] = 1 + r.Uint64N(6)
	}
	return next
}

func randomEvents(r *rand.Rand) (events []storage.ParkedEvent) {
	for range r.IntN(3) {
		events = append(events, storage.ParkedEvent{
			Partition: messages.PartitionID(r.IntN(2)), Offset: 1 + r.Uint64N(3), Reason: fmt.Sprint(r.IntN(9)), Tries: r.Uint32(),
		})
	}
	return events
}
