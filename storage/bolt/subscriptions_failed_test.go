package bolt

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Where the end of a partition's log is damaged, the subscription is not: it can be read, and
// goes on in the other partitions.
func TestSubscriptionOfAFailedPartition(t *testing.T) {
	dir, s := verifiable(t)
	w, other := takeOver(t, s, 0), takeOver(t, s, 1)
	w.append(0)
	damaged := messages.LSN(s.lastLSN.Load())
	other.append(1)
	sub := storage.Subscription{Name: "all", Next: map[messages.PartitionID]uint64{0: uint64(w.next), 1: 2}}
	if err := s.PutSubscription(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	spoiling(format.BucketLog, format.AppendLSNKey(nil, damaged))(t, settled(t, s))
	closeStore(t, s)
	s = open(t, dir, testDescriptor(2, messages.TrustNone), Options{})
	if _, err := s.Register(t.Context(), 0); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("got %v", err)
	}
	got, err := s.Subscription(t.Context(), "all")
	if err != nil || got.Position(0) != sub.Position(0) || got.Position(1) != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := s.MoveSubscription(t.Context(), moveTo("all", 1, uint64(other.next))); err != nil {
		t.Error(err)
	}
}
