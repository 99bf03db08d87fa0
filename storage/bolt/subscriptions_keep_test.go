package bolt

import (
	"errors"
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// A store without subscriptions has none afterwards, unless somebody makes one.
func TestKeepNoSubscriptions(t *testing.T) {
	dir, s := verifiable(t)
	closeStore(t, s)
	s = open(t, dir, testDescriptor(2, messages.TrustNone), Options{})
	if err := s.DeleteSubscription(t.Context(), "x"); !errors.Is(err, storage.ErrNoSubscription) {
		t.Errorf("got %v", err)
	}
	if _, made := filesOf(t, dir)[format.SubscriptionsFileName]; made {
		t.Error("there is a file")
	}
	all := slices.Clone(threeSubscriptions()[1:2])
	if err := s.PutSubscription(t.Context(), all[0]); err != nil {
		t.Fatal(err)
	}
	checkSubscribed(t, s, all)
}

// A subscription that is there already may be of a commit that the disk has not: whoever is told
// that it is durable has made it so.
func TestPutVouchesForWhatIsThere(t *testing.T) {
	dir, s := subscribing(t)
	d := s.Descriptor()
	sub, err := s.Subscription(t.Context(), "all")
	expect.NoError(t, err)
	closeStore(t, s)
	s = open(t, dir, d, smallMap)
	expect.NoError(t, s.PutSubscription(t.Context(), sub))
	if !s.files.Subscriptions.Load().Vouched {
		t.Error("nothing was synced")
	}
}
