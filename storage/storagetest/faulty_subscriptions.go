package storagetest

import (
	"context"
	"fmt"

	"github.com/partita-go/partita/storage"
)

// Subscribing is a Faulty around a store that keeps subscriptions.
type Subscribing struct {
	*Faulty
	inner storage.Subscriptions
}

var (
	_ storage.Store         = Subscribing{}
	_ storage.Subscriptions = Subscribing{}
)

// NewSubscribing returns a Subscribing, or an error if the inner store keeps no
// subscriptions.
func NewSubscribing(f *Faulty) (Subscribing, error) {
	inner, ok := f.Inner().(storage.Subscriptions)
	if !ok {
		return Subscribing{}, fmt.Errorf("%T keeps no subscriptions", f.Inner())
	}
	return Subscribing{Faulty: f, inner: inner}, nil
}

// SubscriptionNames reads the inner store's.
func (f Subscribing) SubscriptionNames(ctx context.Context) ([]string, error) {
	return spoilValue(ctx, f.Faulty, OpSubscriptionNames, func() ([]string, error) { return f.inner.SubscriptionNames(ctx) })
}

// Subscription reads the inner store's.
func (f Subscribing) Subscription(ctx context.Context, name string) (storage.Subscription, error) {
	return spoilValue(ctx, f.Faulty, OpSubscription, func() (storage.Subscription, error) { return f.inner.Subscription(ctx, name) })
}

// ParkedEvents reads the inner store's.
func (f Subscribing) ParkedEvents(ctx context.Context, name string, after storage.ParkedEvent, limit int) ([]storage.ParkedEvent, error) {
	return spoilValue(ctx, f.Faulty, OpParkedEvents, func() ([]storage.ParkedEvent, error) { return f.inner.ParkedEvents(ctx, name, after, limit) })
}

// PutSubscription makes one in the inner store.
func (f Subscribing) PutSubscription(ctx context.Context, s storage.Subscription) error {
	return f.spoil(ctx, OpPutSubscription, func() error { return f.inner.PutSubscription(ctx, s) })
}

// MoveSubscription moves one in the inner store.
func (f Subscribing) MoveSubscription(ctx context.Context, m storage.SubscriptionMove) error {
	return f.spoil(ctx, OpMoveSubscription, func() error { return f.inner.MoveSubscription(ctx, m) })
}

// DeleteSubscription deletes one in the inner store.
func (f Subscribing) DeleteSubscription(ctx context.Context, name string) error {
	return f.spoil(ctx, OpDeleteSubscription, func() error { return f.inner.DeleteSubscription(ctx, name) })
}
