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

// all returns all subscriptions in order of their names.
func (tx subscriptionTx) all() ([]storage.Subscription, error) {
	var list []storage.Subscription
	err := tx.each(func(s *storage.Subscription, err error) error {
		if err == nil {
			list = append(list, *s)
		}
		return err
	})
	return list, err
}

// each tells all subscriptions, those that are damaged with an error and without more than
// the name, and then, with none, what is wrong with all of them together.
func (tx subscriptionTx) each(tell func(*storage.Subscription, error) error) error {
	count := uint64(0)
	last := ""
	err := tx.subscriptions.ForEach(func(k, _ []byte) error {
		name := string(k)
		if count++; count > 1 && name <= last {
			return tx.damaged(bucketSubscriptions, name, errMisplaced)
		}
		last = name
		s, err := tx.read(name)
		if s == nil {
			s = &storage.Subscription{Name: name}
		}
		return tell(s, err)
	})
	if err != nil {
		return err
	}
	if err := tx.checkCount(count); err != nil {
		return tell(nil, err)
	}
	return nil
}

// read returns a subscription, nil if there is none.
func (tx subscriptionTx) read(name string) (*storage.Subscription, error) {
	d, err := tx.definition(name)
	if d == nil || err != nil {
		return nil, err
	}
	s := &storage.Subscription{
		Name: name, SubscriptionSource: d.SubscriptionSource, Stopped: d.stopped, Next: make(map[messages.PartitionID]uint64, d.positions),
	}
	prefix := subscriptionPrefix(name)
	err = readKeys(tx.positions, prefix, partitionKeyLen, func(k, v []byte) (err error) {
		s.Next[messages.PartitionID(be32(k[len(prefix):]))], err = unsealUint(bucketPositions, k, v)
		return err
	})
	if err == nil && len(s.Next) != int(d.positions) {
		err = fmt.Errorf("got %d positions, want %d", len(s.Next), d.positions)
	}
	if err != nil {
		return nil, tx.damaged(bucketPositions, name, err)
	}
	err = readKeys(tx.parked, prefix, plogKeyLen, func(k, v []byte) error {
		e, err := decodeParked(k, v)
		s.Parked = append(s.Parked, e)
		return err
	})
	if err == nil && uint64(len(s.Parked)) != d.parked {
		err = fmt.Errorf("got %d parked events, want %d", len(s.Parked), d.parked)
	}
	if err != nil {
		return nil, tx.damaged(bucketParked, name, err)
	}
	return s, nil
}

// readKeys reads the entries whose keys have a prefix and so many bytes behind it.
func readKeys(b *bbolt.Bucket, prefix []byte, rest int, each func(k, v []byte) error) error {
	c := b.Cursor()
	var last []byte
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if len(k) != len(prefix)+rest || bytes.Compare(k, last) <= 0 {
			return fmt.Errorf("%w: key %x", errLayout, k)
		}
		last = append(last[:0], k...)
		if err := each(k, v); err != nil {
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
	if next, err = unsealUint(bucketPositions, key, v); err != nil {
		return 0, false, tx.damaged(bucketPositions, name, err)
	}
	return next, true, nil
}
