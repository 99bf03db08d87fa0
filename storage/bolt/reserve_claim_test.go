package bolt

import (
	"math/rand/v2"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// A commit takes no page behind what it has claimed, whatever sizes events have, and
// while an old state of the file is being read.
func TestReserveClaimIsEnough(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sizes := []int{0, 2010, 4090, 100 << 10, 1 << 20, 3 << 20, 14 << 20}
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustAll), Options{TailEvents: 1 << 30, TailBytes: 1 << 40})
	if s.reserve == nil {
		t.Skip("no direct writes here")
	}
	w := takeOver(t, s, 0)
	reading, err := s.log.db.Begin(false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reading.Rollback() }()
	for total := 0; total < 192<<20; {
		var events []messages.Event
		for size := 0; len(events) == 0 || size < random.IntN(24<<20) && len(events) < 3000; {
			e := w.event(2)
			e.Body = make([]byte, sizes[random.IntN(len(sizes))])
			size += len(e.Body) + 500
			w.learn(&e)
			w.next++
			events = append(events, e)
		}
		if err := s.Append(t.Context(), storage.Batch{Partition: 0, Epoch: w.epoch, Events: events}); err != nil {
			t.Fatal(err)
		}
		for i := range events {
			total += len(events[i].Body) + 500
		}
		var end int64
		if err := s.log.view(func(tx *bbolt.Tx) error { end = tx.Size(); return nil }); err != nil {
			t.Fatal(err)
		}
		if room := s.reserve.bound.Load() - end; room < reserveSlack*3/4 {
			t.Fatalf("a commit of %d events left %d bytes of what it claimed, want %d", len(events), room, reserveSlack*3/4)
		}
	}
}

// The list of free pages is long while somebody reads an old state of the log.
func TestFreeListIsKnown(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustAll), Options{})
	w := takeOver(t, s, 0)
	reading, err := s.log.db.Begin(false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reading.Rollback() }()
	for range 100 {
		w.append(2)
	}
	if err := s.log.view(func(tx *bbolt.Tx) error {
		if got := freeList(tx); got < 8*100 {
			t.Errorf("got %d bytes, want 8 for each page that 100 commits have freed", got)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
