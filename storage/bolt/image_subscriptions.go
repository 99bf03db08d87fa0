package bolt

import (
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Subscriptions implements [verify.Image].
func (m *image) Subscriptions(
	ctx context.Context, parked func(*storage.Subscription, *storage.ParkedEvent), each func(*storage.Subscription, error) error,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.s.subscriptions.view(func(tx subscriptionTx) error {
		check := func(name string, positions []placed) error {
			return ofLog(tx, name, m.s.checkRests(positions, messages.LSN(m.s.lastLSN.Load())))
		}
		return tx.each(check, parked, each)
	})
}

// each reads all subscriptions, each of whose positions is checked, and then looks for what is wrong with
// all of them together.
func (tx subscriptionTx) each(
	check func(name string, positions []placed) error, parked func(*storage.Subscription, *storage.ParkedEvent), each func(*storage.Subscription, error) error,
) error {
	names, misplaced := tx.names()
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
	if err := tx.checkCount(uint64(len(names))); err != nil {
		return each(nil, err)
	}
	if !whole {
		return nil
	}
	if err := tx.checkOthers(bucketPositions, tx.positions, positions); err != nil {
		return each(nil, err)
	}
	if err := tx.checkOthers(bucketParked, tx.parked, events); err != nil {
		return each(nil, err)
	}
	return nil
}

// checkOthers makes sure that a bucket has no more entries than those of subscriptions.
func (tx subscriptionTx) checkOthers(name []byte, b *bbolt.Bucket, want int) error {
	got := 0
	err := b.ForEach(func(_, _ []byte) error {
		got++
		return nil
	})
	if err == nil && got != want {
		err = &storage.DamagedError{
			Where: tx.f.placeOf(name, "the bucket"), Cause: fmt.Errorf("got %d entries, the subscriptions have %d", got, want),
		}
	}
	return err
}
