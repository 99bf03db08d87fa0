package storagetest

import (
	"context"

	"github.com/partita-go/partita/storage"
)

// checkDelete: a subscription that was deleted has left nothing.
func checkDelete(e *env) {
	s := e.subscribing()
	e.putSubscriptions(whole("x"), whole("x y"), whole("xy"))
	if err := s.DeleteSubscription(e.Context(), "x"); err != nil {
		e.Fatalf("delete: %v", err)
	}
	e.subscribed("after the deletion", whole("x y"), whole("xy"))
	e.isOneOf("a second deletion", s.DeleteSubscription(e.Context(), "x"), storage.ErrNoSubscription)
	e.isOneOf("a move", s.MoveSubscription(e.Context(), storage.SubscriptionMove{Name: "x", Next: positions{0: 1}}), storage.ErrNoSubscription)
	e.putSubscriptions(ofPartition("x", 0))
	e.subscribed("made anew", ofPartition("x", 0), whole("x y"), whole("xy"))
	e.reopen()
	e.subscribed("after reopening", ofPartition("x", 0), whole("x y"), whole("xy"))
}

// checkSubscriptionsSurvive: what was acknowledged is there after reopening and a crash.
func checkSubscriptionsSurvive(e *env) {
	e.subscribing()
	sub, other := whole("x"), ofWorkspace("w", 3)
	e.putSubscriptions(sub, other)
	e.reopen()
	e.subscribed("after reopening", other, sub)
	three := storage.ParkedEvent{Partition: 0, Offset: 3, Reason: "late"}
	e.move(storage.SubscriptionMove{Name: "x", Next: positions{0: 4, 1: 2}, Park: []storage.ParkedEvent{three}, Stopped: new("")})
	sub.Next, sub.Stopped, sub.Parked[1] = positions{0: 4, 1: 2}, "", three
	e.crash()
	e.subscribed("after a crash", other, sub)
	e.move(storage.SubscriptionMove{Name: "w", Next: positions{0: 2}})
	other.Next = positions{0: 2}
	e.crash()
	e.subscribed("after a second crash", other, sub)
	e.reopen()
	e.subscribed("at the end", other, sub)
}

// checkSubscriptionContext: a call whose context has ended does nothing.
func checkSubscriptionContext(e *env) {
	s := e.subscribing()
	e.putSubscriptions(whole("x"))
	ended, cancel := context.WithCancel(e.Context())
	cancel()
	for what, err := range callSubscriptions(ended, s) {
		e.isOneOf(what+" with an ended context", err, context.Canceled)
	}
	e.subscribed("after calls with an ended context", whole("x"))
}

// callSubscriptions calls everything.
func callSubscriptions(ctx context.Context, s storage.Subscriptions) map[string]error {
	_, listErr := s.SubscriptionNames(ctx)
	_, readErr := s.Subscription(ctx, "x")
	_, parkedErr := s.ParkedEvents(ctx, "x", storage.ParkedEvent{}, 1)
	return map[string]error{
		"SubscriptionNames": listErr, "Subscription": readErr, "ParkedEvents": parkedErr,
		"PutSubscription":    s.PutSubscription(ctx, whole("y")),
		"MoveSubscription":   s.MoveSubscription(ctx, storage.SubscriptionMove{Name: "x", Next: positions{0: 6}}),
		"DeleteSubscription": s.DeleteSubscription(ctx, "x"),
	}
}

// checkSubscriptionsClosed: a closed store does nothing.
func checkSubscriptionsClosed(e *env) {
	s := e.subscribing()
	e.putSubscriptions(whole("x"))
	e.close()
	for what, err := range callSubscriptions(e.Context(), s) {
		e.isOneOf(what+" of a closed store", err, storage.ErrClosed)
	}
	e.reopen()
	e.subscribed("after reopening", whole("x"))
}
