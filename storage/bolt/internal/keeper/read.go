package keeper

import (
	"errors"
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

// Names returns the names of all subscriptions. It is an error if one is missing.
func (k *Keeper) Names() (names []string, err error) {
	err = subsdb.View(k.files.Subscriptions.Load(), func(tx subsdb.Tx) error {
		if names, err = tx.Names(); err == nil {
			err = tx.CheckCount(uint64(len(names)))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return names, nil
}

// Subscription returns where one stands. It is an error if the subscription is
// ahead of its log, or was, or if it stands in the log of another copy of the store.
func (k *Keeper) Subscription(name string) (storage.Subscription, error) {
	var found *storage.Subscription
	err := subsdb.View(k.files.Subscriptions.Load(), func(tx subsdb.Tx) error {
		var positions []subsdb.Placed
		var err error
		if found, positions, err = tx.Standing(name); err == nil {
			err = tx.OfLog(name, subsdb.CheckRests(k.files.Log, positions, k.store.LastLSN()))
		}
		return err
	})
	switch {
	case err != nil && found == nil:
		return storage.Subscription{}, err
	case err != nil:
		return *found, err
	case found == nil:
		return storage.Subscription{}, noSubscription(name)
	}
	if err := k.checkPositions(found, k.judgeable(found.Next)); err != nil {
		return *found, ahead(k.files.Subscriptions.Load(), found, err)
	}
	return *found, nil
}

// Parked returns so many of the events that a subscription has parked behind one. It is an error if an event is missing from
// what is parked, where that is read in one piece.
func (k *Keeper) Parked(name string, after storage.ParkedEvent, limit int) (page []storage.ParkedEvent, err error) {
	there := false
	err = subsdb.View(k.files.Subscriptions.Load(), func(tx subsdb.Tx) error {
		d, err := tx.Definition(name)
		if d == nil || err != nil {
			return err
		}
		there = true
		page, err = tx.ParkedPage(name, d, &after, limit)
		return err
	})
	switch {
	case err != nil:
		return page, err
	case !there:
		return nil, noSubscription(name)
	}
	return page, nil
}

// judgeable returns the positions in logs whose ends are known. Where a partition has failed
// it is not the position that is wrong: whoever reads that log is told what is, and those of
// other partitions do not suffer.
func (k *Keeper) judgeable(next map[messages.PartitionID]uint64) map[messages.PartitionID]uint64 {
	known := make(map[messages.PartitionID]uint64, len(next))
	for id, offset := range next {
		if !k.store.HasFailed(id) {
			known[id] = offset
		}
	}
	return known
}

// ahead says that a subscription is damaged if its position is beyond the log: the file is
// newer than the log, and what is appended until the log comes there would be left out.
func ahead(f *boltfile.File, sub *storage.Subscription, err error) error {
	if !errors.Is(err, storage.ErrSubscription) {
		return err
	}
	return &storage.DamagedError{Where: f.PlaceOf(format.BucketPositions, "subscription %q", sub.Name), Cause: err}
}

func noSubscription(name string) error { return fmt.Errorf("%w: %q", storage.ErrNoSubscription, name) }

// CheckOwn makes sure that all positions are of this log. One that is damaged is an error of whoever reads it.
func (k *Keeper) CheckOwn() error {
	return subsdb.View(k.files.Subscriptions.Load(), func(tx subsdb.Tx) error {
		names, err := tx.Names()
		for i := 0; err == nil && i < len(names); i++ {
			sub, positions, damage := tx.Standing(names[i])
			if sub != nil && damage == nil {
				err = tx.OfLog(names[i], subsdb.CheckRests(k.files.Log, positions, k.store.LastLSN()))
			}
		}
		if errors.Is(err, subsdb.ErrOtherPositions) {
			return err
		}
		return nil
	})
}
