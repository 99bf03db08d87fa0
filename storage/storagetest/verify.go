package storagetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/verify"
)

// Verify fails the test if the store, which must be at rest, violates an
// invariant. Every test that wrote to a store ends with it.
func Verify(t testing.TB, s storage.Store) {
	t.Helper()
	// The test's own context has ended when its cleanups run.
	report, err := verify.Run(context.WithoutCancel(t.Context()), s, verify.Options{})
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	if err := report.Err(); err != nil {
		t.Errorf("verify: %v", err)
	}
}

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
