package subsdb_test

import (
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

// A move changes what it names and nothing else, and counts what is parked.
func TestMoves(t *testing.T) {
	type next = map[messages.PartitionID]uint64
	again := storage.ParkedEvent{Offset: 3, Reason: "again", Tries: 4, At: 9}
	five := storage.ParkedEvent{Offset: 5, Reason: "five"}
	for name, c := range map[string]struct {
		move storage.SubscriptionMove
		want func(*storage.Subscription)
	}{
		"nothing":            {storage.SubscriptionMove{}, func(*storage.Subscription) {}},
		"forward":            {storage.SubscriptionMove{Next: next{1: 3}}, func(s *storage.Subscription) { s.Next[1] = 3 }},
		"a new position":     {storage.SubscriptionMove{Next: next{2: 4}}, func(s *storage.Subscription) { s.Next[2] = 4 }},
		"the first position": {storage.SubscriptionMove{Next: next{2: 1}}, func(s *storage.Subscription) { s.Next[2] = 1 }},
		"stop":               {storage.SubscriptionMove{Stopped: new("why")}, func(s *storage.Subscription) { s.Stopped = "why" }},
		"park": {storage.SubscriptionMove{Park: []storage.ParkedEvent{five}}, func(s *storage.Subscription) {
			s.Parked = []storage.ParkedEvent{s.Parked[0], five, s.Parked[1]}
		}},
		"park again": {storage.SubscriptionMove{Park: []storage.ParkedEvent{again}}, func(s *storage.Subscription) { s.Parked[0] = again }},
		"unpark": {
			storage.SubscriptionMove{Unpark: []storage.ParkedEvent{{Offset: 3}}},
			func(s *storage.Subscription) { s.Parked = s.Parked[1:] },
		},
		"unpark twice, and what is not parked": {
			storage.SubscriptionMove{Unpark: []storage.ParkedEvent{{Offset: 3}, {Offset: 3}, {Offset: 4}}},
			func(s *storage.Subscription) { s.Parked = s.Parked[1:] },
		},
		"unpark and park": {
			storage.SubscriptionMove{Unpark: []storage.ParkedEvent{{Offset: 3}}, Park: []storage.ParkedEvent{again}},
			func(s *storage.Subscription) { s.Parked[0] = again },
		},
		"park twice": {
			storage.SubscriptionMove{Park: []storage.ParkedEvent{{Offset: 3}, again}},
			func(s *storage.Subscription) { s.Parked[0] = again },
		},
		"rewind over none": {storage.SubscriptionMove{Next: next{1: 1}}, func(s *storage.Subscription) { s.Next[1] = 1 }},
		"rewind over one": {storage.SubscriptionMove{Next: next{0: 4}}, func(s *storage.Subscription) {
			s.Next[0], s.Parked = 4, s.Parked[:1]
		}},
		"rewind to one, which is to be unparked": {
			storage.SubscriptionMove{Next: next{0: 3}, Unpark: []storage.ParkedEvent{{Offset: 3}}},
			func(s *storage.Subscription) { s.Next[0], s.Parked = 3, nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := kept(t, three()...)
			c.move.Name = "all"
			expect.NoError(t, b.move(c.move))
			want := three()
			c.want(&want[0])
			b.is(want...)
		})
	}
}

// A move that changes nothing has no changes: nothing is written then.
func TestMoveOfNothing(t *testing.T) {
	b := kept(t, three()...)
	for _, m := range []storage.SubscriptionMove{{Name: "all"}, {Name: "all", Unpark: []storage.ParkedEvent{{Offset: 4}}}} {
		b.view(func(tx subsdb.Tx) {
			have, err := tx.Definition("all")
			expect.NoError(t, err)
			changes, err := tx.Moving(have, &m, &storage.Subscription{}, nil)
			expect.NoError(t, err)
			expect.Equal(t, 0, len(changes), m)
		})
	}
}

// A parked event whose key is damaged may belong before the position that is rewound to: it
// is not taken for one that will be delivered again.
func TestRewindOverDamagedParked(t *testing.T) {
	b := kept(t, three()...)
	from := format.ParkedKey("all", 0, 3)
	value := b.get(format.BucketParked, from)
	b.change(subsdb.Change{Bucket: format.BucketParked, Key: from},
		subsdb.Change{Bucket: format.BucketParked, Key: format.ParkedKey("all", 0, 6), Value: value})
	err := b.move(storage.SubscriptionMove{Name: "all", Next: map[messages.PartitionID]uint64{0: 5}})
	expect.ErrorIs(t, err, storage.ErrDamaged)
	b.finds(`bucket parked, subscription "all"`)
}

// None can be taken out that is not counted.
func TestUnparkIsCounted(t *testing.T) {
	b := kept(t, three()...)
	b.view(func(tx subsdb.Tx) {
		d, err := tx.Definition("all")
		expect.NoError(t, err)
		d.Parked = 0
		_, err = tx.Moving(d, &storage.SubscriptionMove{Name: "all", Unpark: []storage.ParkedEvent{{Offset: 3}}}, &storage.Subscription{}, nil)
		expect.ErrorIs(t, err, storage.ErrDamaged)
		before := three()[0]
		_, err = tx.Moving(d, &storage.SubscriptionMove{Name: "all"}, &before, placed(map[messages.PartitionID]uint64{0: 1}))
		expect.ErrorIs(t, err, storage.ErrDamaged, "what is rewound over")
	})
}

// What is deleted leaves nothing, and the others as they are.
func TestDeletions(t *testing.T) {
	more := three()[0]
	more.Name = "all of it" // its name begins with the other's
	b := kept(t, append(three(), more)...)
	expect.NoError(t, b.try(func(tx subsdb.Tx) ([]subsdb.Change, error) { return tx.Counting(-1, subsdb.Deletions("all")) }))
	b.is(more, three()[1], three()[2])
	b.spoil(format.BucketPositions, format.PositionKey("w2", 0))
	b.spoil(format.BucketSubscriptions, []byte("w2"))
	expect.NoError(t, b.try(func(tx subsdb.Tx) ([]subsdb.Change, error) { return tx.Counting(-1, subsdb.Deletions("w2")) }))
	b.is(more, three()[1])
	b.spoil(format.BucketHeader, format.KeySubscriptions)
	err := b.try(func(tx subsdb.Tx) ([]subsdb.Change, error) { return tx.Counting(-1, subsdb.Deletions("p1")) })
	expect.ErrorIs(t, err, storage.ErrDamaged)
}

// The same event parked twice is one. Reasons are cut.
func TestNewSubscription(t *testing.T) {
	s := storage.Subscription{Name: "s", Stopped: "\xff", Parked: []storage.ParkedEvent{{Offset: 1, Reason: "\xff"}, {Offset: 1, Reason: "second"}}}
	b := kept(t, s)
	b.is(storage.Subscription{
		Name: "s", Stopped: storage.CutSubscriptionReason("\xff"), Next: map[messages.PartitionID]uint64{},
		Parked: []storage.ParkedEvent{{Offset: 1, Reason: "second"}},
	})
}

// What waits for the file is not changed by whoever has handed it over.
func TestNothingIsShared(t *testing.T) {
	source := storage.SubscriptionSource{
		Partition: new(messages.PartitionID(1)), Workspace: new(messages.WSID(2)), Kinds: []messages.WSKind{3},
	}
	move := storage.SubscriptionMove{
		Name: "s", Next: map[messages.PartitionID]uint64{1: 2}, Stopped: new("no"),
		Park: []storage.ParkedEvent{{Offset: 1}}, Unpark: []storage.ParkedEvent{{Offset: 2}},
	}
	ownSource, ownMove := subsdb.OwnSource(source), subsdb.OwnMove(move)
	expect.Equal(t, source, ownSource)
	expect.Equal(t, move, ownMove)
	*source.Partition, *source.Workspace, source.Kinds[0] = 9, 9, 9
	move.Next[1], *move.Stopped, move.Park[0].Offset, move.Unpark[0].Offset = 9, "9", 9, 9
	expect.Equal(t, storage.SubscriptionSource{
		Partition: new(messages.PartitionID(1)), Workspace: new(messages.WSID(2)), Kinds: []messages.WSKind{3},
	}, ownSource)
	expect.Equal(t, storage.SubscriptionMove{
		Name: "s", Next: map[messages.PartitionID]uint64{1: 2}, Stopped: new("no"),
		Park: []storage.ParkedEvent{{Offset: 1}}, Unpark: []storage.ParkedEvent{{Offset: 2}},
	}, ownMove)
	expect.Equal(t, storage.SubscriptionMove{Name: "s"}, subsdb.OwnMove(storage.SubscriptionMove{Name: "s"}))
}
