package subsdb_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

// What is put is read as it was, and what is not there is told.
func TestReads(t *testing.T) {
	b := kept(t, three()...)
	b.is(three()...)
	b.view(func(tx subsdb.Tx) {
		names, err := tx.Names()
		expect.NoError(t, err)
		expect.Equal(t, []string{"all", "p1", "w2"}, names)
		expect.NoError(t, tx.CheckCount(3))
		d, err := tx.Definition("none")
		expect.NoError(t, err)
		expect.Equal(t, nil, d)
		s, positions, err := tx.Standing("none")
		expect.NoError(t, err)
		expect.Equal(t, true, s == nil && positions == nil)
		s, positions, err = tx.Standing("all")
		expect.NoError(t, err)
		expect.Equal(t, placed(three()[0].Next), positions)
		expect.Equal(t, 2, s.ParkedCount)
		for p, want := range map[messages.PartitionID]uint64{0: 8, 1: 2, 2: 1} {
			next, there, err := tx.Position("all", p)
			expect.NoError(t, err)
			expect.Equal(t, want, next)
			expect.Equal(t, p < 2, there, p)
		}
	})
	expect.NoError(t, subsdb.View(nil, func(subsdb.Tx) error { return errors.ErrUnsupported }), "without a file nothing is read")
}

// A page has so many behind a place; an empty place is the beginning.
func TestParkedPage(t *testing.T) {
	b := kept(t, three()...)
	all := three()[0].Parked
	for _, c := range []struct {
		after storage.ParkedEvent
		limit int
		want  []storage.ParkedEvent
	}{
		{storage.ParkedEvent{}, 0, nil},
		{storage.ParkedEvent{}, 1, all[:1]},
		{storage.ParkedEvent{}, 2, all},
		{storage.ParkedEvent{}, 9, all},
		{all[0], 9, all[1:]},
		{storage.ParkedEvent{Offset: 4}, 1, all[1:]},
		{all[1], 9, nil},
	} {
		b.view(func(tx subsdb.Tx) {
			d, err := tx.Definition("all")
			expect.NoError(t, err)
			page, err := tx.ParkedPage("all", d, &c.after, c.limit)
			expect.NoError(t, err, c)
			expect.Equal(t, c.want, page, c)
		})
	}
}

// A parked event that is damaged does not hide those before it, nor where the subscription
// stands; one whose position is damaged says what it reads.
func TestDamageIsFoundWhereItIsRead(t *testing.T) {
	b := kept(t, three()...)
	b.spoil(format.BucketParked, format.ParkedKey("all", 0, 7))
	b.spoil(format.BucketPositions, format.PositionKey("w2", 0))
	first := three()[0].Parked[:1]
	b.view(func(tx subsdb.Tx) {
		all, _, err := tx.Standing("all")
		expect.NoError(t, err)
		expect.Equal(t, 8, all.Position(0))
		expect.Equal(t, 2, all.ParkedCount)
		d, err := tx.Definition("all")
		expect.NoError(t, err)
		page, err := tx.ParkedPage("all", d, &storage.ParkedEvent{}, 1)
		expect.NoError(t, err)
		expect.Equal(t, first, page)
		for _, limit := range []int{1, 2} {
			page, err := tx.ParkedPage("all", d, &first[0], limit)
			expect.ErrorIs(t, err, storage.ErrDamaged)
			expect.Equal(t, nil, page)
		}
		page, err = tx.ParkedPage("all", d, &storage.ParkedEvent{}, 2)
		expect.ErrorIs(t, err, storage.ErrDamaged)
		expect.Equal(t, first, page, "those before the damaged one")
		w2, positions, err := tx.Standing("w2")
		expect.ErrorIs(t, err, storage.ErrDamaged)
		expect.Equal(t, true, w2.Equal(&three()[2].SubscriptionSource) && positions == nil)
		expect.Equal(t, 1, w2.ParkedCount)
		_, _, err = tx.Position("w2", 0)
		expect.ErrorIs(t, err, storage.ErrDamaged)
		names, err := tx.Names()
		expect.NoError(t, err)
		expect.Equal(t, []string{"all", "p1", "w2"}, names)
	})
}

// A parked event that is missing is noticed however many there are, where all are read.
func TestParkedIsCounted(t *testing.T) {
	many := storage.Subscription{Name: "many", Next: map[messages.PartitionID]uint64{0: 41}}
	for offset := range uint64(40) {
		many.Parked = append(many.Parked, storage.ParkedEvent{Offset: offset + 1, Reason: strings.Repeat("r", 1000)})
	}
	b := kept(t, many)
	b.is(many)
	b.change(subsdb.Change{Bucket: format.BucketParked, Key: format.ParkedKey("many", 0, 20)})
	b.finds(`subscription "many": got 39 parked events, want 40`)
	for limit, want := range map[int]error{38: nil, 39: storage.ErrDamaged, 40: storage.ErrDamaged} {
		b.view(func(tx subsdb.Tx) {
			d, err := tx.Definition("many")
			expect.NoError(t, err)
			_, err = tx.ParkedPage("many", d, &storage.ParkedEvent{}, limit)
			expect.ErrorIs(t, err, want, limit)
		})
	}
}

// finds makes sure that a check finds just this.
func (b *book) finds(what ...string) {
	b.t.Helper()
	_, wrong := b.all()
	expect.Equal(b.t, len(what), len(wrong), wrong)
	for i, err := range wrong {
		expect.ErrorIs(b.t, err, storage.ErrDamaged)
		if !strings.Contains(err.Error(), what[i]) {
			b.t.Errorf("got %v, want %s", err, what[i])
		}
	}
}

// What is wrong is found by whoever reads all subscriptions, and does not hide the others.
func TestCheckFinds(t *testing.T) {
	p1 := []byte("p1")
	for name, c := range map[string]struct {
		change func(*book)
		whole  int
		want   []string
	}{
		"a definition is damaged": {func(b *book) { b.spoil(format.BucketSubscriptions, p1) }, 2,
			[]string{`bucket subscriptions, subscription "p1": checksum`}},
		"a subscription is missing": {func(b *book) { b.change(subsdb.Change{Bucket: format.BucketSubscriptions, Key: p1}) }, 2,
			[]string{"bucket subscriptions, the bucket: got 2 subscriptions, want 3"}},
		"a position is missing": {func(b *book) {
			b.change(subsdb.Change{Bucket: format.BucketPositions, Key: format.PositionKey("all", 1)})
		}, 2,
			[]string{`bucket positions, subscription "all": got 1 positions, want 2`}},
		"a position of nobody": {func(b *book) {
			b.change(subsdb.PositionChange("nobody", subsdb.Placed{Position: subsdb.Position{Next: 1}}))
		}, 3,
			[]string{"bucket positions, the bucket: got 4 entries, the subscriptions have 3"}},
		"a parked event of nobody": {func(b *book) { b.change(subsdb.ParkedChange("nobody", &storage.ParkedEvent{Offset: 1})) }, 3,
			[]string{"bucket parked, the bucket: got 4 entries, the subscriptions have 3"}},
		"the count is missing": {func(b *book) { b.change(subsdb.Change{Bucket: format.BucketHeader, Key: format.KeySubscriptions}) }, 3,
			[]string{"bucket header, subscriptions: value has a wrong layout"}},
		"two are damaged": {func(b *book) {
			b.spoil(format.BucketParked, format.ParkedKey("w2", 0, 1))
			b.spoil(format.BucketPositions, format.PositionKey("all", 0))
		}, 1, []string{`bucket positions, subscription "all"`, `bucket parked, subscription "w2"`}},
		"a key is too long": {func(b *book) {
			b.change(subsdb.Change{Bucket: format.BucketPositions, Key: append(format.PositionKey("all", 1), 0), Value: []byte{1}})
		}, 2, []string{`bucket positions, subscription "all": value has a wrong layout: key`}},
	} {
		t.Run(name, func(t *testing.T) {
			b := kept(t, three()...)
			c.change(b)
			b.finds(c.want...)
			whole, _ := b.all()
			expect.Equal(t, c.whole, len(whole))
		})
	}
}

// A subscription that was not found may have lost its name, or be missing: then it is not said that there is none.
func TestAbsence(t *testing.T) {
	for name, change := range map[string]func(*book){
		"another is damaged": func(b *book) { b.spoil(format.BucketSubscriptions, []byte("p1")) },
		"one is missing":     func(b *book) { b.change(subsdb.Change{Bucket: format.BucketSubscriptions, Key: []byte("all")}) },
		"the count is damaged": func(b *book) {
			b.spoil(format.BucketHeader, format.KeySubscriptions)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := kept(t, three()...)
			change(b)
			b.view(func(tx subsdb.Tx) {
				d, err := tx.Definition("none")
				expect.ErrorIs(t, err, storage.ErrDamaged)
				expect.Equal(t, nil, d)
			})
			expect.ErrorIs(t, b.move(storage.SubscriptionMove{Name: "none"}), storage.ErrDamaged)
		})
	}
}

// Whoever reads all subscriptions can end that.
func TestCheckEnds(t *testing.T) {
	b := kept(t, three()...)
	b.spoil(format.BucketHeader, format.KeySubscriptions)
	for ends := range 4 {
		seen := 0
		b.view(func(tx subsdb.Tx) {
			err := tx.Each(func(string, []subsdb.Placed) error { return nil }, func(*storage.Subscription, *storage.ParkedEvent) {},
				func(*storage.Subscription, error) error {
					if seen++; seen > ends {
						return errors.ErrUnsupported
					}
					return nil
				})
			expect.ErrorIs(t, err, errors.ErrUnsupported, ends)
			expect.Equal(t, ends+1, seen)
		})
	}
}

// Each subscription that can be read is asked whether its positions are of this log.
func TestCheckAsksForPositions(t *testing.T) {
	b := kept(t, three()...)
	b.spoil(format.BucketPositions, format.PositionKey("w2", 0))
	asked := make(map[string][]subsdb.Placed)
	b.view(func(tx subsdb.Tx) {
		expect.NoError(t, tx.Each(func(name string, positions []subsdb.Placed) error {
			asked[name] = positions
			return errors.ErrUnsupported
		}, func(*storage.Subscription, *storage.ParkedEvent) {}, func(s *storage.Subscription, err error) error {
			expect.Equal(t, s.Name != "w2", errors.Is(err, errors.ErrUnsupported), s.Name)
			return nil
		}))
	})
	expect.Equal(t, map[string][]subsdb.Placed{"all": placed(three()[0].Next), "p1": nil}, asked)
}
