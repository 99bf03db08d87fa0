package partition

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// SubscriptionSource is what a subscription reads.
type SubscriptionSource = storage.SubscriptionSource

// SubscriptionAdmin looks after the subscriptions that a store keeps, by their names: those
// that the application runs, and those that nobody runs, which the next Subscribe finds as
// they were left here. It is safe for concurrent use, and does what the methods of
// [Subscription] do. All methods return ErrNoSubscription of package storage if there is none
// of the name, ErrKeepsNone if the store keeps no subscriptions, and what the store returns.
type SubscriptionAdmin struct {
	// app is nil if no application is deployed over the store.
	app   *App
	store storage.Store
	now   func() time.Time
}

// SubscriptionAdmin returns what looks after the subscriptions of the application's store.
// After Undeploy its changes return ErrStopped.
func (a *App) SubscriptionAdmin() *SubscriptionAdmin {
	return &SubscriptionAdmin{app: a, store: a.store, now: a.parts.options.Clock.Now}
}

// NewSubscriptionAdmin returns what looks after the subscriptions of a store over which no
// application is deployed.
func NewSubscriptionAdmin(store storage.Store) *SubscriptionAdmin {
	return &SubscriptionAdmin{store: store, now: Options{}.withDefaults().Clock.Now}
}

func (a *SubscriptionAdmin) kept(name string) (*kept, error) {
	store, ok := a.store.(storage.Subscriptions)
	if !ok {
		return nil, fmt.Errorf("%w: %T", ErrKeepsNone, a.store)
	}
	return &kept{name: name, store: store, reader: NewReader(a.store), now: a.now}, nil
}

// running returns the subscription of a name that runs, nil if none does.
func (a *SubscriptionAdmin) running(name string) *Subscription {
	if a.app == nil {
		return nil
	}
	a.app.mu.Lock()
	defer a.app.mu.Unlock()
	if s := a.app.subscriptions[name]; s != nil && len(s.allLanes()) > 0 {
		return s
	}
	return nil
}

// List returns where each subscription stands, in order of their names, from behind a name
// on. One that is damaged has failed, and the error says why.
func (a *SubscriptionAdmin) List(ctx context.Context, after string) iter.Seq2[SubscriptionStatus, error] {
	return func(yield func(SubscriptionStatus, error) bool) {
		k, err := a.kept("")
		if err != nil {
			yield(SubscriptionStatus{}, err)
			return
		}
		names, err := k.store.SubscriptionNames(ctx)
		if err != nil {
			yield(SubscriptionStatus{}, err)
			return
		}
		for _, name := range names {
			if name <= after {
				continue
			}
			status, err := a.Status(ctx, name)
			switch {
			case errors.Is(err, storage.ErrNoSubscription):
				continue // it was deleted meanwhile
			case errors.Is(err, storage.ErrDamaged):
				status.Err, err = err, nil
			}
			if !yield(status, err) || err != nil {
				return
			}
		}
	}
}

// Status returns where a subscription stands. The lanes of one that does not run have ended.
func (a *SubscriptionAdmin) Status(ctx context.Context, name string) (SubscriptionStatus, error) {
	if s := a.running(name); s != nil {
		return s.Status(ctx)
	}
	k, err := a.kept(name)
	if err != nil {
		return SubscriptionStatus{}, err
	}
	return k.Status(ctx)
}

// Parked gives the events that a subscription could not handle, from behind a place on, which
// is zero for all: see [Subscription.Parked].
func (a *SubscriptionAdmin) Parked(ctx context.Context, name string, after ParkedEvent) iter.Seq2[ParkedEvent, error] {
	k, err := a.kept(name)
	if err != nil {
		return func(yield func(ParkedEvent, error) bool) { yield(ParkedEvent{}, err) }
	}
	return k.allParked(ctx, after)
}

// changeable is a subscription, running or not.
type changeable interface {
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	Rewind(ctx context.Context, p messages.PartitionID, offset uint64) error
	SkipToEnd(ctx context.Context) error
	Replay(ctx context.Context, e ParkedEvent) error
	Drop(ctx context.Context, e ParkedEvent) error
	Delete(ctx context.Context) error
}

var (
	_ changeable = (*Subscription)(nil)
	_ changeable = (*kept)(nil)
)

// change changes a subscription: the one that runs or, while none is started, what the store
// has of it.
func (a *SubscriptionAdmin) change(ctx context.Context, name string, do func(changeable) error) error {
	k, err := a.kept(name)
	if err != nil {
		return err
	}
	if a.app == nil {
		return do(k)
	}
	if s := a.running(name); s != nil {
		return do(s)
	}
	done, err := a.app.starting.take(ctx)
	if err != nil {
		return err
	}
	if s := a.running(name); s != nil {
		done() // it was started meanwhile; its handler must not keep others from starting
		return do(s)
	}
	defer done()
	if a.app.isStopping() {
		return ErrStopped
	}
	return do(k)
}

func (a *App) isStopping() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stopping
}

// Pause is [Subscription.Pause].
func (a *SubscriptionAdmin) Pause(ctx context.Context, name string) error {
	return a.change(ctx, name, func(s changeable) error { return s.Pause(ctx) })
}

// Resume is [Subscription.Resume].
func (a *SubscriptionAdmin) Resume(ctx context.Context, name string) error {
	return a.change(ctx, name, func(s changeable) error { return s.Resume(ctx) })
}

// Rewind is [Subscription.Rewind].
func (a *SubscriptionAdmin) Rewind(ctx context.Context, name string, p messages.PartitionID, offset uint64) error {
	return a.change(ctx, name, func(s changeable) error { return s.Rewind(ctx, p, offset) })
}

// SkipToEnd is [Subscription.SkipToEnd].
func (a *SubscriptionAdmin) SkipToEnd(ctx context.Context, name string) error {
	return a.change(ctx, name, func(s changeable) error { return s.SkipToEnd(ctx) })
}

// Replay is [Subscription.Replay], or ErrNotRunning.
func (a *SubscriptionAdmin) Replay(ctx context.Context, name string, e ParkedEvent) error {
	return a.change(ctx, name, func(s changeable) error { return s.Replay(ctx, e) })
}

// Drop is [Subscription.Drop].
func (a *SubscriptionAdmin) Drop(ctx context.Context, name string, e ParkedEvent) error {
	return a.change(ctx, name, func(s changeable) error { return s.Drop(ctx, e) })
}

// Delete is [Subscription.Delete]. It also deletes one that is damaged.
func (a *SubscriptionAdmin) Delete(ctx context.Context, name string) error {
	return a.change(ctx, name, func(s changeable) error { return s.Delete(ctx) })
}
