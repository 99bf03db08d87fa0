package subsdb_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newFile makes a file with the buckets of a role, open until the test ends.
func newFile(t *testing.T, d *boltfile.Directory, r format.Role) *boltfile.File {
	t.Helper()
	f, err := boltfile.OpenFile(d, r.FileName(), r.FileName(), &bbolt.Options{InitialMmapSize: 32 << 10})
	expect.NoError(t, err)
	expect.NoError(t, f.Update(func(tx *bbolt.Tx) (err error) {
		for _, name := range r.Buckets() {
			_, failed := tx.CreateBucket(name)
			err = errors.Join(err, failed)
		}
		return err
	}))
	return f
}

// book is a subscriptions.db.
type book struct {
	t *testing.T
	f *boltfile.File
}

// kept is a file with subscriptions.
func kept(t *testing.T, all ...storage.Subscription) *book {
	t.Helper()
	f := newFile(t, expect.Opened(t, boltfile.OpenDirectory, t.TempDir()), format.RoleSubscriptions)
	t.Cleanup(func() { expect.NoError(t, f.Close()) })
	b := &book{t: t, f: f}
	b.change(subsdb.CountChange(0))
	for _, s := range all {
		b.put(s)
	}
	return b
}

// try makes changes, unless there is an error.
func (b *book) try(judge func(subsdb.Tx) ([]subsdb.Change, error)) error {
	return b.f.Update(func(tx *bbolt.Tx) error {
		s := subsdb.NewTx(b.f, tx)
		changes, err := judge(s)
		return errors.Join(err, s.Apply(changes))
	})
}

func (b *book) change(changes ...subsdb.Change) {
	b.t.Helper()
	expect.NoError(b.t, b.try(func(subsdb.Tx) ([]subsdb.Change, error) { return changes, nil }))
}

// placed are positions that rest on nothing, in order.
func placed(next map[messages.PartitionID]uint64) (all []subsdb.Placed) {
	for _, p := range slices.Sorted(maps.Keys(next)) {
		all = append(all, subsdb.Placed{Partition: p, Position: subsdb.Position{Next: next[p]}})
	}
	return all
}

func (b *book) put(s storage.Subscription) {
	b.t.Helper()
	expect.NoError(b.t, b.try(func(tx subsdb.Tx) ([]subsdb.Change, error) {
		changes := subsdb.NewSubscription(&s)
		for _, at := range placed(s.Next) {
			changes = append(changes, subsdb.PositionChange(s.Name, at))
		}
		return tx.Counting(1, changes)
	}))
}

func (b *book) move(m storage.SubscriptionMove) error {
	return b.try(func(tx subsdb.Tx) ([]subsdb.Change, error) {
		have, err := tx.Definition(m.Name)
		if err != nil {
			return nil, err
		}
		before, _, err := tx.Standing(m.Name)
		if err != nil {
			return nil, err
		}
		return tx.Moving(have, &m, before, placed(m.Next))
	})
}

func (b *book) view(fn func(subsdb.Tx)) {
	b.t.Helper()
	expect.NoError(b.t, subsdb.View(b.f, func(tx subsdb.Tx) error { fn(tx); return nil }))
}

// get returns what stands under a key.
func (b *book) get(bucket, key []byte) (value []byte) {
	b.t.Helper()
	expect.NoError(b.t, b.f.View(func(tx *bbolt.Tx) error {
		value = slices.Clone(tx.Bucket(bucket).Get(key))
		return nil
	}))
	return value
}

// spoil flips a bit of what stands under a key.
func (b *book) spoil(bucket, key []byte) {
	b.t.Helper()
	value := b.get(bucket, key)
	value[len(value)/2] ^= 8
	b.change(subsdb.Change{Bucket: bucket, Key: key, Value: value})
}

// all returns all subscriptions as a check reads them, with what they have parked, and what is wrong.
func (b *book) all() (all []storage.Subscription, wrong []error) {
	b.t.Helper()
	parked := make(map[string][]storage.ParkedEvent)
	b.view(func(tx subsdb.Tx) {
		err := tx.Each(
			func(string, []subsdb.Placed) error { return nil },
			func(s *storage.Subscription, e *storage.ParkedEvent) { parked[s.Name] = append(parked[s.Name], *e) },
			func(s *storage.Subscription, err error) error {
				if err != nil {
					wrong = append(wrong, err)
				} else {
					s.Parked, s.ParkedCount = parked[s.Name], 0
					all = append(all, *s)
				}
				return nil
			})
		if err != nil {
			wrong = append(wrong, err)
		}
	})
	return all, wrong
}

// is makes sure that the file has these subscriptions, and nothing else.
func (b *book) is(want ...storage.Subscription) {
	b.t.Helper()
	got, wrong := b.all()
	expect.Equal(b.t, nil, wrong)
	expect.Equal(b.t, want, got)
}

// three are subscriptions of each source.
func three() []storage.Subscription {
	return []storage.Subscription{
		{
			Name: "all", SubscriptionSource: storage.SubscriptionSource{Kinds: []messages.WSKind{1}},
			Next: map[messages.PartitionID]uint64{0: 8, 1: 2},
			Parked: []storage.ParkedEvent{
				{Partition: 0, Offset: 3, Reason: "no", Tries: 3, At: 7},
				{Partition: 0, Offset: 7, Reason: strings.Repeat("long ", 300), Tries: 1, At: 8},
			},
		},
		{
			Name: "p1", SubscriptionSource: storage.SubscriptionSource{Partition: new(messages.PartitionID(1))}, Stopped: "paused",
			Next: map[messages.PartitionID]uint64{},
		},
		{
			Name: "w2", SubscriptionSource: storage.SubscriptionSource{Workspace: new(messages.WSID(2))},
			Next: map[messages.PartitionID]uint64{0: 3}, Parked: []storage.ParkedEvent{{Partition: 0, Offset: 1}},
		},
	}
}
