package storagetest

import (
	"fmt"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// parkedInPages fails unless a subscription has parked exactly these, in pieces of any size.
func (e *env) parkedInPages(when, name string, want []storage.ParkedEvent) {
	e.Helper()
	for limit := 1; limit <= len(want)+1; limit++ {
		var got []storage.ParkedEvent
		after := storage.ParkedEvent{}
		for {
			page, err := e.subscriptions().ParkedEvents(e.Context(), name, after, limit)
			if err != nil {
				e.Fatalf("%s: parked of %q, by %d: %v", when, name, limit, err)
			}
			got = append(got, page...)
			if len(page) != limit {
				break
			}
			after = page[limit-1]
		}
		if !slices.Equal(got, want) {
			e.Fatalf("%s: parked of %q, by %d:\n got %+v\nwant %+v", when, name, limit, got, want)
		}
	}
}

// checkParkedPages: what is parked is read from behind any place on, also one at which nothing
// is parked, and no more of it than was asked for.
func checkParkedPages(e *env) {
	s := e.subscribing()
	sub := whole("x")
	e.putSubscriptions(sub, whole("x "), whole("x0"), ofPartition("y", 1))
	at := func(p messages.PartitionID, offset uint64) storage.ParkedEvent {
		return storage.ParkedEvent{Partition: p, Offset: offset}
	}
	for _, c := range []struct {
		after    storage.ParkedEvent
		from, to int
	}{
		{at(0, 0), 0, 3}, {at(0, 1), 0, 3}, {at(0, 2), 1, 3}, {at(0, 3), 1, 3}, {at(0, 4), 2, 3}, {at(0, 9), 2, 3},
		{at(1, 0), 2, 3}, {at(1, 1), 3, 3}, {at(1, 2), 3, 3}, {at(2, 0), 3, 3}, {at(9, 9), 3, 3}, {at(0, 0), 0, 1}, {at(0, 2), 1, 2},
	} {
		got, err := s.ParkedEvents(e.Context(), "x", c.after, max(c.to-c.from, 1))
		if err != nil || !slices.Equal(got, sub.Parked[c.from:c.to]) {
			e.Fatalf("behind %d, %d: got %+v, %v, want %+v", c.after.Partition, c.after.Offset, got, err, sub.Parked[c.from:c.to])
		}
	}
	e.parkedInPages("nothing parked", "y", nil)
	for _, name := range []string{"", "none", "x\x00"} {
		_, err := s.ParkedEvents(e.Context(), name, at(0, 0), 1)
		e.isOneOf(fmt.Sprintf("parked of %q", name), err, storage.ErrNoSubscription)
	}
	e.move(storage.SubscriptionMove{Name: "x", Unpark: sub.Parked[:1]})
	got, err := s.ParkedEvents(e.Context(), "x", sub.Parked[0], 1)
	if err != nil || !slices.Equal(got, sub.Parked[1:2]) {
		e.Fatalf("behind one that is parked no more: got %+v, %v, want %+v", got, err, sub.Parked[1:2])
	}
}
