package verify_test

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

// One subscription that is damaged, or what it has parked, or that is listed and not there, keeps
// no other from being checked.
func TestRunChecksTheOtherSubscriptions(t *testing.T) {
	damage := &storage.DamagedError{Where: "here", Cause: errors.New("flipped")}
	for _, c := range []struct {
		op    storagetest.Op
		fails error
		want  verify.Check
	}{
		{storagetest.OpSubscription, damage, verify.CheckDamage},
		{storagetest.OpParkedEvents, damage, verify.CheckDamage},
		{storagetest.OpSubscription, storage.ErrNoSubscription, verify.CheckSubscription},
		{storagetest.OpParkedEvents, storage.ErrNoSubscription, verify.CheckSubscription},
	} {
		store, err := storagetest.NewMemory(storagetest.Descriptor(messages.TrustNone))
		if err != nil {
			t.Fatal(err)
		}
		faulty, err := storagetest.NewSubscribing(storagetest.NewFaulty(store))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c"} {
			if err := faulty.PutSubscription(t.Context(), storage.Subscription{Name: name}); err != nil {
				t.Fatal(err)
			}
		}
		faulty.Plant(storagetest.Fault{Op: c.op, Do: storagetest.Fail(c.fails), Times: 1})
		r, err := verify.Run(t.Context(), faulty, verify.Options{})
		if err != nil || r.FaultCount != 1 || r.Faults[0].Check != c.want || r.Subscriptions != 2 {
			t.Errorf("%v, %v: got %s, %v, want one fault and two subscriptions", c.op, c.fails, r, err)
		}
	}
}
