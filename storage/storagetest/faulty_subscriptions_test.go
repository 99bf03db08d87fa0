package storagetest

import (
	"context"
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// subscribingFactory makes Subscribing stores around those of another factory.
type subscribingFactory struct{ MemoryFactory }

func (f subscribingFactory) Open(t testing.TB, d messages.Descriptor) storage.Store {
	return f.wrap(t, f.MemoryFactory.Open(t, d))
}

func (f subscribingFactory) Reopen(t testing.TB, s storage.Store) storage.Store {
	return f.wrap(t, f.MemoryFactory.Reopen(t, s.(Subscribing).Inner()))
}

func (f subscribingFactory) Crash(t testing.TB, s storage.Store) storage.Store { return f.Reopen(t, s) }

func (f subscribingFactory) wrap(t testing.TB, s storage.Store) storage.Store {
	wrapped, err := NewSubscribing(NewFaulty(s))
	if err != nil {
		t.Fatal(err)
	}
	return wrapped
}

func TestSubscribingWithoutFaultsConforms(t *testing.T) {
	for _, c := range subscriptionChecks {
		t.Run(c.name, func(t *testing.T) { c.check(t, subscribingFactory{}, messages.TrustNone) })
	}
}

func TestSubscribingNeedsSubscriptions(t *testing.T) {
	if _, err := NewSubscribing(NewFaulty(NewFaulty(nil))); err == nil {
		t.Error("got no error")
	}
}

// newSubscribed returns a store with subscription x, and one call of each operation.
func newSubscribed(t *testing.T) (Subscribing, map[Op]func(context.Context) error) {
	t.Helper()
	s, err := NewSubscribing(NewFaulty(MemoryFactory{}.Open(t, Descriptor(messages.TrustNone))))
	if err == nil {
		err = s.PutSubscription(t.Context(), storage.Subscription{Name: "x"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, map[Op]func(context.Context) error{
		OpSubscriptionNames: func(ctx context.Context) error { _, err := s.SubscriptionNames(ctx); return err },
		OpSubscription:      func(ctx context.Context) error { _, err := s.Subscription(ctx, "x"); return err },
		OpParkedEvents: func(ctx context.Context) error {
			_, err := s.ParkedEvents(ctx, "x", storage.ParkedEvent{}, 1)
			return err
		},
		OpPutSubscription:  func(ctx context.Context) error { return s.PutSubscription(ctx, storage.Subscription{Name: "y"}) },
		OpMoveSubscription: func(ctx context.Context) error { return s.MoveSubscription(ctx, stopping("x")) },
		OpDeleteSubscription: func(ctx context.Context) error {
			return s.DeleteSubscription(ctx, "x")
		},
	}
}

func stopping(name string) storage.SubscriptionMove {
	return storage.SubscriptionMove{Name: name, Stopped: new("stopped")}
}

// hasChanged reports whether any write of newSubscribed was done.
func hasChanged(t *testing.T, s Subscribing) bool {
	t.Helper()
	all, err := WholeSubscriptions(t.Context(), s.inner)
	if err != nil {
		t.Fatal(err)
	}
	return len(all) != 1 || all[0].Name != "x" || all[0].Stopped != ""
}

func TestSubscribingFaults(t *testing.T) {
	for op := OpSubscriptionNames; op < numOps; op++ {
		for name, c := range map[string]struct {
			do   Effect
			want error
			done bool
		}{
			"fails": {Fail(errInjected), errInjected, false},
			"full":  {Full(), storage.ErrFull, false},
			"lost":  {UnknownNotDone(), messages.ErrOutcomeUnknown, false},
			"done":  {UnknownDone(), messages.ErrOutcomeUnknown, true},
		} {
			t.Run(op.String()+" "+name, func(t *testing.T) {
				s, calls := newSubscribed(t)
				s.Plant(Fault{Op: op, Do: c.do, Times: 1})
				if err := calls[op](t.Context()); !errors.Is(err, c.want) {
					t.Errorf("got error %v, want %v", err, c.want)
				}
				if got, want := hasChanged(t, s), c.done && op.writes(); got != want {
					t.Errorf("got %t, want %t: was it done?", got, want)
				}
				if s.Injected(op) != 1 || s.Calls(op) == 0 {
					t.Errorf("got %d injected, %d calls", s.Injected(op), s.Calls(op))
				}
			})
		}
	}
}

func TestSubscribingPanics(t *testing.T) {
	for op := OpSubscriptionNames; op < numOps; op++ {
		s, calls := newSubscribed(t)
		s.Plant(Fault{Op: op, Do: Panic(errInjected), Times: 1})
		func() {
			defer func() {
				if value, ok := recover().(error); !ok || !errors.Is(value, errInjected) {
					t.Errorf("%v: got panic %v", op, value)
				}
			}()
			_ = calls[op](t.Context())
		}()
		if hasChanged(t, s) {
			t.Errorf("%v was done", op)
		}
		if err := calls[op](t.Context()); err != nil {
			t.Errorf("%v again: %v", op, err)
		}
	}
}

// An answer that is held when its context ends is a write of unknown outcome, and done.
func TestSubscribingHoldsAnswers(t *testing.T) {
	for op := OpSubscriptionNames; op < numOps; op++ {
		s, calls := newSubscribed(t)
		gate := NewGate()
		s.Plant(Fault{Op: op, Do: HoldAnswer(gate), Times: 1})
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() { answer <- calls[op](ctx) }()
		if err := gate.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		if hasChanged(t, s) != op.writes() {
			t.Errorf("%v: got %t, want %t: was it done?", op, !op.writes(), op.writes())
		}
		cancel()
		err := <-answer
		if !errors.Is(err, context.Canceled) || errors.Is(err, messages.ErrOutcomeUnknown) != op.writes() {
			t.Errorf("%v: got error %v", op, err)
		}
	}
}
