package bolt

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

// parking makes a store with subscriptions "one" and "many" of partition 0, of whose events
// they have parked one and so many.
func parking(t *testing.T, many int) *Store {
	t.Helper()
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	takeOver(t, s, 0).appendMany(many, 1)
	for name, parked := range map[string]int{"one": 1, "many": many} {
		sub := storage.Subscription{Name: name, Next: map[messages.PartitionID]uint64{0: uint64(many) + 1}}
		for offset := range uint64(parked) {
			sub.Parked = append(sub.Parked, storage.ParkedEvent{Offset: offset + 1, Reason: strings.Repeat("r", 1000)})
		}
		if err := s.PutSubscription(t.Context(), sub); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// What is read of a subscription does not grow with what it has parked, nor does a change of
// one parked event.
func TestParkedIsReadInPieces(t *testing.T) {
	const many = 500
	s := parking(t, many)
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	event := storage.ParkedEvent{Offset: 1, Reason: strings.Repeat("r", 1000)}
	for what, read := range map[string]func(name string){
		"subscription": func(name string) {
			_, err := s.Subscription(t.Context(), name)
			check(err)
		},
		"names": func(string) {
			_, err := s.SubscriptionNames(t.Context())
			check(err)
		},
		"the first": func(name string) {
			page, err := s.ParkedEvents(t.Context(), name, storage.ParkedEvent{}, 1)
			check(err)
			if !slices.Equal(page, []storage.ParkedEvent{event}) {
				t.Errorf("%s: got %+v", name, page)
			}
		},
		"park again": func(name string) {
			check(s.MoveSubscription(t.Context(), storage.SubscriptionMove{Name: name, Park: []storage.ParkedEvent{event}}))
		},
	} {
		one := testing.AllocsPerRun(20, func() { read("one") })
		all := testing.AllocsPerRun(20, func() { read("many") })
		if all > one+many/4 {
			t.Errorf("%s: got %.0f allocations with %d parked, %.0f with one", what, all, many, one)
		}
	}
	whole, err := storagetest.WholeSubscription(t.Context(), s, "many")
	check(err)
	if len(whole.Parked) != many {
		t.Errorf("got %d parked, want %d", len(whole.Parked), many)
	}
}

// What is known of a subscription that is damaged is told with the damage.
func TestDamageIsToldWithWhatIsKnown(t *testing.T) {
	_, s := subscribing(t)
	f := s.files.Subscriptions.Load()
	spoiling(format.BucketParked, format.ParkedKey("all", 0, 7))(t, f)
	spoiling(format.BucketPositions, format.PositionKey("w2", 0))(t, f)
	var sound []storage.ParkedEvent
	var damage error
	for e, err := range storage.AllParked(t.Context(), s, "all", storage.ParkedEvent{}) {
		if damage = err; err == nil {
			sound = append(sound, e)
		}
	}
	if !errors.Is(damage, storage.ErrDamaged) || !slices.Equal(sound, threeSubscriptions()[0].Parked[:1]) {
		t.Errorf("got %+v and %v, want those before the damaged one", sound, damage)
	}
	want := threeSubscriptions()[2]
	if w2, err := s.Subscription(t.Context(), "w2"); !errors.Is(err, storage.ErrDamaged) || !w2.Equal(&want.SubscriptionSource) || w2.ParkedCount != 1 {
		t.Errorf("got %+v, %v", w2, err)
	}
	if names, err := s.SubscriptionNames(t.Context()); err != nil || !slices.Equal(names, []string{"all", "p1", "w2"}) {
		t.Errorf("got %q, %v", names, err)
	}
}

// A parked event that is missing is noticed however many there are: they are read in pieces,
// of which none says how many there must be.
func TestParkedIsCounted(t *testing.T) {
	s := parking(t, 40)
	counted := func() bool {
		report, err := verify.Run(t.Context(), s, verify.Options{})
		expect.NoError(t, err)
		return !strings.Contains(fmt.Sprint(report.Faults), "got 39 parked events, want 40")
	}
	if !counted() {
		t.Fatal("a fault before anything is missing")
	}
	f := s.files.Subscriptions.Load()
	expect.NoError(t, f.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketParked).Delete(format.ParkedKey("many", 0, 20))
	}))
	if counted() {
		t.Error("it is not noticed that one is missing")
	}
}
