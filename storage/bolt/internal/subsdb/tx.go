package subsdb

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Tx is subscriptions.db in a transaction.
type Tx struct {
	F                                        *boltfile.File
	bolt                                     *bbolt.Tx
	Header, Subscriptions, positions, parked *bbolt.Bucket
}

// View reads a file, if there is one.
func View(f *boltfile.File, fn func(Tx) error) error {
	if f == nil {
		return nil
	}
	return f.View(func(tx *bbolt.Tx) error { return fn(NewTx(f, tx)) })
}

// NewTx returns the file in a transaction of bbolt.
func NewTx(f *boltfile.File, tx *bbolt.Tx) Tx {
	return Tx{
		F: f, bolt: tx, Header: tx.Bucket(format.BucketHeader), Subscriptions: tx.Bucket(format.BucketSubscriptions),
		positions: tx.Bucket(format.BucketPositions), parked: tx.Bucket(format.BucketParked),
	}
}

// Damaged names an entry of a subscription.
func (tx Tx) Damaged(bucket []byte, name string, cause error) *storage.DamagedError {
	return &storage.DamagedError{Where: tx.F.PlaceOf(bucket, "subscription %q", name), Cause: cause}
}

// Definition returns what there is under a name, nil if nothing.
func (tx Tx) Definition(name string) (*format.Definition, error) {
	key := []byte(name)
	v := tx.Subscriptions.Get(key)
	if v == nil {
		return nil, tx.CheckAbsent(name)
	}
	d, err := format.DecodeDefinition(key, v)
	if err != nil {
		return nil, tx.Damaged(format.BucketSubscriptions, name, err)
	}
	return &d, nil
}

// CheckAbsent makes sure that a subscription that was not found is not there: that no
// other one has lost its name, and that none is missing. What was lost would be made
// anew, and begin at 1.
func (tx Tx) CheckAbsent(name string) error {
	count := uint64(0)
	err := tx.Subscriptions.ForEach(func(k, v []byte) error {
		count++
		if _, err := format.DecodeDefinition(k, v); err != nil {
			return tx.Damaged(format.BucketSubscriptions, string(k), err)
		}
		if string(k) == name {
			return tx.Damaged(format.BucketSubscriptions, name, format.ErrMisplaced)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return tx.CheckCount(count)
}

// Count returns how many subscriptions there must be.
func (tx Tx) Count() (uint64, error) {
	v := tx.Header.Get(format.KeySubscriptions)
	n, err := format.UnsealUint(format.BucketHeader, format.KeySubscriptions, v)
	if err != nil {
		return 0, &storage.DamagedError{Where: tx.F.PlaceOf(format.BucketHeader, "%s", format.KeySubscriptions), Cause: err}
	}
	return n, nil
}

// CheckCount makes sure that no subscription is missing.
func (tx Tx) CheckCount(got uint64) error {
	want, err := tx.Count()
	if err == nil && got != want {
		err = &storage.DamagedError{
			Where: tx.F.PlaceOf(format.BucketSubscriptions, "the bucket"), Cause: fmt.Errorf("got %d subscriptions, want %d", got, want),
		}
	}
	return err
}

// Names returns the names of all subscriptions in their order.
func (tx Tx) Names() (names []string, err error) {
	err = tx.Subscriptions.ForEach(func(k, _ []byte) error {
		name := string(k)
		if last := len(names) - 1; last >= 0 && name <= names[last] {
			return tx.Damaged(format.BucketSubscriptions, name, format.ErrMisplaced)
		}
		names = append(names, name)
		return nil
	})
	return names, err
}

// Standing returns a subscription without what it has parked, nil if there is none, and what
// is known of one whose positions are damaged; and the positions, in order of their partitions.
func (tx Tx) Standing(name string) (s *storage.Subscription, positions []Placed, err error) {
	d, err := tx.Definition(name)
	if d == nil || err != nil {
		return nil, nil, err
	}
	s = &storage.Subscription{
		Name: name, SubscriptionSource: d.SubscriptionSource, Stopped: d.Stopped, ParkedCount: d.Parked,
		Next: make(map[messages.PartitionID]uint64, d.Positions),
	}
	prefix := format.SubscriptionPrefix(name)
	err = readKeys(tx.positions, prefix, prefix, format.PartitionKeyLen, func(k, v []byte) (more bool, err error) {
		at, err := DecodePosition(k, v)
		if err == nil {
			p := messages.PartitionID(format.Uint32(k[len(prefix):]))
			s.Next[p] = at.Next
			positions = append(positions, Placed{Partition: p, Position: at})
		}
		return true, err
	})
	if err == nil && len(s.Next) != int(d.Positions) {
		err = fmt.Errorf("got %d positions, want %d", len(s.Next), d.Positions)
	}
	if err != nil {
		return s, nil, tx.Damaged(format.BucketPositions, name, err)
	}
	return s, positions, nil
}

// read returns a subscription as standing does, and tells each event that it has parked.
func (tx Tx) read(name string, tell func(*storage.Subscription, *storage.ParkedEvent)) (*storage.Subscription, []Placed, error) {
	s, positions, err := tx.Standing(name)
	if s == nil || err != nil {
		return s, nil, err
	}
	count := uint64(0)
	prefix := format.SubscriptionPrefix(name)
	err = readKeys(tx.parked, prefix, prefix, format.PLogKeyLen, func(k, v []byte) (more bool, err error) {
		e, err := format.DecodeParked(k, v)
		if err == nil {
			count++
			tell(s, &e)
		}
		return true, err
	})
	if err == nil {
		err = checkParked(count, s.ParkedCount)
	}
	if err != nil {
		return s, nil, tx.Damaged(format.BucketParked, name, err)
	}
	return s, positions, nil
}

func checkParked(got, want uint64) error {
	if got != want {
		return fmt.Errorf("got %d parked events, want %d", got, want)
	}
	return nil
}

// ParkedPage returns so many of the events that a subscription has parked behind a place, with
// an error those before it. If they are all that it has, and not only one was asked for, none
// may be missing.
func (tx Tx) ParkedPage(name string, d *format.Definition, after *storage.ParkedEvent, limit int) (page []storage.ParkedEvent, err error) {
	prefix := format.SubscriptionPrefix(name)
	from, first := format.ParkedKey(name, after.Partition, after.Offset), after.Compare(&storage.ParkedEvent{}) == 0
	if first {
		from = prefix
	}
	whole := first && limit > 1
	err = readKeys(tx.parked, prefix, from, format.PLogKeyLen, func(k, v []byte) (more bool, err error) {
		switch {
		case !first && bytes.Equal(k, from):
			return true, nil
		case len(page) >= limit:
			whole = false
			return false, nil
		}
		e, err := format.DecodeParked(k, v)
		if err == nil {
			page = append(page, e)
		}
		return true, err
	})
	if err == nil && whole {
		err = checkParked(uint64(len(page)), d.Parked)
	}
	if err != nil {
		return page, tx.Damaged(format.BucketParked, name, err)
	}
	return page, nil
}

// readKeys reads the entries whose keys have a prefix and so many bytes behind it, from a key
// on, until there is enough.
func readKeys(b *bbolt.Bucket, prefix, from []byte, rest int, each func(k, v []byte) (more bool, err error)) error {
	c := b.Cursor()
	var last []byte
	for k, v := c.Seek(from); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if len(k) != len(prefix)+rest || bytes.Compare(k, last) <= 0 {
			return fmt.Errorf("%w: key %x", format.ErrLayout, k)
		}
		last = append(last[:0], k...)
		if more, err := each(k, v); !more || err != nil {
			return err
		}
	}
	return nil
}

// Position returns a position, and whether it is there: else the log is read from 1 on.
func (tx Tx) Position(name string, p messages.PartitionID) (next uint64, there bool, err error) {
	key := format.PositionKey(name, p)
	v := tx.positions.Get(key)
	if v == nil {
		return 1, false, nil
	}
	at, err := DecodePosition(key, v)
	if err != nil {
		return 0, false, tx.Damaged(format.BucketPositions, name, err)
	}
	return at.Next, true, nil
}

// Each reads all subscriptions, each of whose positions is checked, and then looks for what is wrong with
// all of them together.
func (tx Tx) Each(
	check func(name string, positions []Placed) error, parked func(*storage.Subscription, *storage.ParkedEvent), each func(*storage.Subscription, error) error,
) error {
	names, misplaced := tx.Names()
	positions, events, whole := 0, 0, true
	for _, name := range names {
		s, stands, err := tx.read(name, parked)
		if err != nil {
			whole, s = false, &storage.Subscription{Name: name}
		} else {
			err = check(name, stands)
		}
		positions += len(s.Next)
		events += int(s.ParkedCount)
		if err := each(s, err); err != nil {
			return err
		}
	}
	if misplaced != nil {
		return misplaced
	}
	if err := tx.CheckCount(uint64(len(names))); err != nil {
		return each(nil, err)
	}
	if !whole {
		return nil
	}
	err := tx.checkOthers(format.BucketPositions, positions)
	if err == nil {
		err = tx.checkOthers(format.BucketParked, events)
	}
	if err != nil {
		err = each(nil, err)
	}
	return err
}

// checkOthers makes sure that a bucket has no more entries than those of subscriptions.
func (tx Tx) checkOthers(name []byte, want int) error {
	got := 0
	err := tx.bolt.Bucket(name).ForEach(func(_, _ []byte) error {
		got++
		return nil
	})
	if err == nil && got != want {
		err = &storage.DamagedError{
			Where: tx.F.PlaceOf(name, "the bucket"), Cause: fmt.Errorf("got %d entries, the subscriptions have %d", got, want),
		}
	}
	return err
}
