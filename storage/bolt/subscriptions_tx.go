package bolt

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// subscriptionTx is subscriptions.db in a transaction.
type subscriptionTx struct {
	f                                        *file
	header, subscriptions, positions, parked *bbolt.Bucket
}

func newSubscriptionTx(f *file, tx *bbolt.Tx) subscriptionTx {
	return subscriptionTx{
		f: f, header: tx.Bucket(bucketHeader), subscriptions: tx.Bucket(bucketSubscriptions),
		positions: tx.Bucket(bucketPositions), parked: tx.Bucket(bucketParked),
	}
}

func (tx subscriptionTx) damaged(bucket []byte, name string, cause error) *storage.DamagedError {
	return &storage.DamagedError{Where: tx.f.placeOf(bucket, "subscription %q", name), Cause: cause}
}

// definition returns what there is under a name, nil if nothing.
func (tx subscriptionTx) definition(name string) (*definition, error) {
	key := []byte(name)
	v := tx.subscriptions.Get(key)
	if v == nil {
		return nil, tx.checkAbsent(name)
	}
	d, err := decodeDefinition(key, v)
	if err != nil {
		return nil, tx.damaged(bucketSubscriptions, name, err)
	}
	return &d, nil
}

// checkAbsent makes sure that a subscription that was not found is not there: that no
// other one has lost its name, and that none is missing. What was lost would be made
// anew, and begin at 1.
func (tx subscriptionTx) checkAbsent(name string) error {
	count := uint64(0)
	err := tx.subscriptions.ForEach(func(k, v []byte) error {
		count++
		if _, err := decodeDefinition(k, v); err != nil {
			return tx.damaged(bucketSubscriptions, string(k), err)
		}
		if string(k) == name {
			return tx.damaged(bucketSubscriptions, name, errMisplaced)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return tx.checkCount(count)
}

// count returns how many subscriptions there must be.
func (tx subscriptionTx) count() (uint64, error) {
	v := tx.header.Get(keySubscriptions)
	n, err := unsealUint(bucketHeader, keySubscriptions, v)
	if err != nil {
		return 0, &storage.DamagedError{Where: tx.f.placeOf(bucketHeader, "%s", keySubscriptions), Cause: err}
	}
	return n, nil
}

func (tx subscriptionTx) checkCount(got uint64) error {
	want, err := tx.count()
	if err == nil && got != want {
		err = &storage.DamagedError{
			Where: tx.f.placeOf(bucketSubscriptions, "the bucket"), Cause: fmt.Errorf("got %d subscriptions, want %d", got, want),
		}
	}
	return err
}

// names returns the names of all subscriptions in their order.
func (tx subscriptionTx) names() (names []string, err error) {
	err = tx.subscriptions.ForEach(func(k, _ []byte) error {
		name := string(k)
		if last := len(names) - 1; last >= 0 && name <= names[last] {
			return tx.damaged(bucketSubscriptions, name, errMisplaced)
		}
		names = append(names, name)
		return nil
	})
	return names, err
}

// standing returns a subscription without what it has parked, nil if there is none, and what
// is known of one whose positions are damaged; and the positions, in order of their partitions.
func (tx subscriptionTx) standing(name string) (s *storage.Subscription, positions []placed, err error) {
	d, err := tx.definition(name)
	if d == nil || err != nil {
		return nil, nil, err
	}
	s = &storage.Subscription{
		Name: name, SubscriptionSource: d.SubscriptionSource, Stopped: d.stopped, ParkedCount: d.parked,
		Next: make(map[messages.PartitionID]uint64, d.positions),
	}
	prefix := subscriptionPrefix(name)
	err = readKeys(tx.positions, prefix, prefix, partitionKeyLen, func(k, v []byte) (more bool, err error) {
		at, err := decodePosition(k, v)
		if err == nil {
			p := messages.PartitionID(be32(k[len(prefix):]))
			s.Next[p] = at.next
			positions = append(positions, placed{partition: p, position: at})
		}
		return true, err
	})
	if err == nil && len(s.Next) != int(d.positions) {
		err = fmt.Errorf("got %d positions, want %d", len(s.Next), d.positions)
	}
	if err != nil {
		return s, nil, tx.damaged(bucketPositions, name, err)
	}
	return s, positions, nil
}

// read returns a subscription as standing does, and tells each event that it has parked.
func (tx subscriptionTx) read(name string, tell func(*storage.Subscription, *storage.ParkedEvent)) (*storage.Subscription, []placed, error) {
	s, positions, err := tx.standing(name)
	if s == nil || err != nil {
		return s, nil, err
	}
	count := uint64(0)
	prefix := subscriptionPrefix(name)
	err = readKeys(tx.parked, prefix, prefix, plogKeyLen, func(k, v []byte) (more bool, err error) {
		e, err := decodeParked(k, v)
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
		return s, nil, tx.damaged(bucketParked, name, err)
	}
	return s, positions, nil
}

func checkParked(got, want uint64) error {
	if got != want {
		return fmt.Errorf("got %d parked events, want %d", got, want)
	}
	return nil
}

// parkedPage returns so many of the events that a subscription has parked behind a place, with
// an error those before it. If they are all that it has, and not only one was asked for, none
// may be missing.
func (tx subscriptionTx) parkedPage(name string, d *definition, after *storage.ParkedEvent, limit int) (page []storage.ParkedEvent, err error) {
	prefix := subscriptionPrefix(name)
	from, first := parkedKey(name, after.Partition, after.Offset), after.Compare(&storage.ParkedEvent{}) == 0
	if first {
		from = prefix
	}
	whole := first && limit > 1
	err = readKeys(tx.parked, prefix, from, plogKeyLen, func(k, v []byte) (more bool, err error) {
		switch {
		case !first && bytes.Equal(k, from):
			return true, nil
		case len(page) >= limit:
			whole = false
			return false, nil
		}
		e, err := decodeParked(k, v)
		if err == nil {
			page = append(page, e)
		}
		return true, err
	})
	if err == nil && whole {
		err = checkParked(uint64(len(page)), d.parked)
	}
	if err != nil {
		return page, tx.damaged(bucketParked, name, err)
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
			return fmt.Errorf("%w: key %x", errLayout, k)
		}
		last = append(last[:0], k...)
		if more, err := each(k, v); !more || err != nil {
			return err
		}
	}
	return nil
}

// position returns a position, and whether it is there: else the log is read from 1 on.
func (tx subscriptionTx) position(name string, p messages.PartitionID) (next uint64, there bool, err error) {
	key := positionKey(name, p)
	v := tx.positions.Get(key)
	if v == nil {
		return 1, false, nil
	}
	at, err := decodePosition(key, v)
	if err != nil {
		return 0, false, tx.damaged(bucketPositions, name, err)
	}
	return at.next, true, nil
}
