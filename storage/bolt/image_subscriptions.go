package bolt

import (
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
)

// Subscriptions implements [verify.Image].
func (m *image) Subscriptions(ctx context.Context, each func(*storage.Subscription, error) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.s.subscriptions.view(func(tx subscriptionTx) error {
		positions, parked, whole := 0, 0, true
		err := tx.each(func(s *storage.Subscription, err error) error {
			if err != nil {
				whole = false
				return each(s, err)
			}
			positions += len(s.Next)
			parked += len(s.Parked)
			return each(s, nil)
		})
		if err != nil || !whole {
			return err
		}
		if err := tx.checkOthers(bucketPositions, tx.positions, positions); err != nil {
			return each(nil, err)
		}
		if err := tx.checkOthers(bucketParked, tx.parked, parked); err != nil {
			return each(nil, err)
		}
		return nil
	})
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
