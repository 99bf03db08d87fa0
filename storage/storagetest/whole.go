package storagetest

import (
	"context"
	"fmt"

	"github.com/partita-go/partita/storage"
)

// WholeSubscription returns a subscription with all that it has parked. It is for tests, which
// park little, and while nothing changes it. ParkedCount is checked, and left out.
func WholeSubscription(ctx context.Context, s storage.Subscriptions, name string) (storage.Subscription, error) {
	whole, err := s.Subscription(ctx, name)
	if err != nil {
		return whole, err
	}
	if whole.Parked != nil {
		return whole, fmt.Errorf("subscription %q: got parked events with it: %+v", name, whole.Parked)
	}
	for e, err := range storage.AllParked(ctx, s, name, storage.ParkedEvent{}) {
		if err != nil {
			return whole, err
		}
		whole.Parked = append(whole.Parked, e)
	}
	if n := uint64(len(whole.Parked)); n != whole.ParkedCount {
		return whole, fmt.Errorf("subscription %q: got %d parked events, it says that it has %d", name, n, whole.ParkedCount)
	}
	whole.ParkedCount = 0
	return whole, nil
}

// WholeSubscriptions returns all of them so, in order of their names.
func WholeSubscriptions(ctx context.Context, s storage.Subscriptions) (all []storage.Subscription, err error) {
	names, err := s.SubscriptionNames(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		one, err := WholeSubscription(ctx, s, name)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}
