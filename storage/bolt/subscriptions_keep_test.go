package bolt

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// With KeepSubscriptions a store that is only read lets subscriptions change, and nothing
// else: what it changes is there afterwards, the log and the projections are as they were.
// Nobody else opens the store meanwhile, but the log and the projections are open to be read only.
func TestKeepSubscriptions(t *testing.T) {
	dir, s := subscribing(t)
	closeStore(t, s)
	before := filesOf(t, dir)
	o := Options{ReadOnly: true, KeepSubscriptions: true, LockTimeout: time.Millisecond}
	s, err := OpenExisting(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	want := threeSubscriptions()
	want[0].Next[1] = 1
	for what, err := range map[string]error{
		"move":   s.MoveSubscription(t.Context(), moveTo("all", 1, 1)),
		"delete": s.DeleteSubscription(t.Context(), "w2"),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := s.MoveSubscription(t.Context(), moveTo("all", 1, 4)); !errors.Is(err, storage.ErrSubscription) {
		t.Errorf("beyond the end: got %v", err)
	}
	if _, err := s.TakeEpoch(t.Context(), 0); !errors.Is(err, ErrReadOnly) {
		t.Errorf("got %v", err)
	}
	if err := s.Append(t.Context(), storage.Batch{}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("got %v", err)
	}
	for _, other := range []Options{{LockTimeout: time.Millisecond}, {ReadOnly: true, LockTimeout: time.Millisecond}, o} {
		if _, err := OpenExisting(t.Context(), dir, other); !errors.Is(err, storage.ErrLocked) {
			t.Errorf("%+v: got %v", other, err)
		}
	}
	op := &opening{Store: &Store{options: Options{ReadOnly: true, LockTimeout: time.Millisecond}.WithDefaults(), directory: held(t, dir)}}
	for _, r := range []role{roleLog, roleState} {
		if _, err := op.inspect(r); err != nil {
			t.Errorf("the file is open for writing: %v", err)
		}
	}
	closeStore(t, s)
	after := filesOf(t, dir)
	if before[subscriptionsFileName] == after[subscriptionsFileName] {
		t.Error("subscriptions.db is as it was")
	}
	delete(before, subscriptionsFileName)
	delete(after, subscriptionsFileName)
	if !reflect.DeepEqual(before, after) {
		t.Error("other files were changed")
	}
	checkSubscribed(t, openToRead(t, dir), want[:2])
}

// A store without subscriptions has none afterwards, unless somebody makes one.
func TestKeepNoSubscriptions(t *testing.T) {
	dir, s := verifiable(t)
	closeStore(t, s)
	s = open(t, dir, testDescriptor(2, messages.TrustNone), Options{ReadOnly: true, KeepSubscriptions: true})
	if err := s.DeleteSubscription(t.Context(), "x"); !errors.Is(err, storage.ErrNoSubscription) {
		t.Errorf("got %v", err)
	}
	if _, made := filesOf(t, dir)[subscriptionsFileName]; made {
		t.Error("there is a file")
	}
	all := slices.Clone(threeSubscriptions()[1:2])
	if err := s.PutSubscription(t.Context(), all[0]); err != nil {
		t.Fatal(err)
	}
	checkSubscribed(t, s, all)
}

// A commit takes so many requests and leaves the others where they wait.
func TestKeeperLeavesWhatIsTooMuch(t *testing.T) {
	s := &Store{}
	s.subscriptions.requests = make(chan *subscriptionRequest, 2*maxKeptRequests)
	for range maxKeptRequests + 1 {
		s.subscriptions.requests <- &subscriptionRequest{ticket: newTicket()}
	}
	k := newKeeper(s)
	if got := len(k.gather(<-s.subscriptions.requests)); got != maxKeptRequests {
		t.Errorf("got %d requests, want %d", got, maxKeptRequests)
	}
	if got := len(s.subscriptions.requests); got != 1 {
		t.Errorf("got %d requests left, want 1", got)
	}
}

// A subscription that is there already may be of a commit that the disk has not: who is told
// that it is durable has made it so.
func TestPutVouchesForWhatIsThere(t *testing.T) {
	dir, s := subscribing(t)
	d := s.Descriptor()
	sub, err := s.Subscription(t.Context(), "all")
	noError(t, err)
	closeStore(t, s)
	s = open(t, dir, d, smallMap)
	noError(t, s.PutSubscription(t.Context(), sub))
	if !s.subscriptions.file.Load().vouched {
		t.Error("nothing was synced")
	}
}
