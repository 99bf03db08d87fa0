package keeper

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

// Put makes a subscription, which is valid, unless it is there.
func (k *Keeper) Put(ctx context.Context, sub storage.Subscription) error {
	changes := subsdb.NewSubscription(&sub) // all but the positions
	sub = storage.Subscription{Name: sub.Name, SubscriptionSource: subsdb.OwnSource(sub.SubscriptionSource), Next: maps.Clone(sub.Next)}
	return k.keep(ctx, &Request{puts: true, judge: func(tx subsdb.Tx) ([]subsdb.Change, error) {
		have, err := tx.Definition(sub.Name)
		switch {
		case err != nil:
			return nil, err
		case have == nil:
			if err := k.checkPositions(&sub, sub.Next); err != nil {
				return nil, err
			}
			for _, at := range k.placeAt(&sub.SubscriptionSource, sub.Next) {
				changes = append(changes, subsdb.PositionChange(sub.Name, at))
			}
			return tx.Counting(1, changes)
		case !have.Equal(&sub.SubscriptionSource):
			return nil, fmt.Errorf("%w: %q is there, and reads something else", storage.ErrSubscription, sub.Name)
		}
		return nil, nil
	}})
}

// Move changes where a subscription stands.
func (k *Keeper) Move(ctx context.Context, m storage.SubscriptionMove) error {
	m = subsdb.OwnMove(m)
	return k.keep(ctx, &Request{judge: func(tx subsdb.Tx) ([]subsdb.Change, error) {
		have, err := tx.Definition(m.Name)
		switch {
		case err != nil:
			return nil, err
		case have == nil:
			return nil, noSubscription(m.Name)
		}
		return k.judgeMove(tx, have, &m)
	}})
}

// Delete deletes a subscription, a damaged one too.
func (k *Keeper) Delete(ctx context.Context, name string) error {
	return k.keep(ctx, &Request{judge: func(tx subsdb.Tx) ([]subsdb.Change, error) {
		if tx.Subscriptions.Get([]byte(name)) == nil {
			if err := tx.CheckAbsent(name); err != nil {
				return nil, err
			}
			return nil, noSubscription(name)
		}
		return tx.Counting(-1, subsdb.Deletions(name))
	}})
}

// checkPositions refuses positions beyond the next events of their logs.
func (k *Keeper) checkPositions(sub *storage.Subscription, next map[messages.PartitionID]uint64) error {
	for p, offset := range next {
		if offset <= 1 {
			continue
		}
		there, err := k.store.Reaches(&sub.SubscriptionSource, p, offset-1)
		if err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("%w: %q: partition %d: got position %d, which is beyond the next event of its log",
				storage.ErrSubscription, sub.Name, p, offset)
		}
	}
	return nil
}

// judgeMove returns the changes of a move, or why it is refused.
func (k *Keeper) judgeMove(tx subsdb.Tx, have *format.Definition, m *storage.SubscriptionMove) ([]subsdb.Change, error) {
	sub := storage.Subscription{Name: m.Name, SubscriptionSource: have.SubscriptionSource, Next: make(map[messages.PartitionID]uint64)}
	involved := slices.Collect(maps.Keys(m.Next))
	for i := range m.Park {
		involved = append(involved, m.Park[i].Partition)
	}
	for _, p := range involved {
		next, there, err := tx.Position(m.Name, p)
		if err != nil {
			return nil, err
		}
		if there {
			sub.Next[p] = next
		}
	}
	if err := sub.ValidateMove(&k.files.Descriptor, m); err != nil {
		return nil, err
	}
	if err := k.checkPositions(&sub, m.Next); err != nil {
		return nil, err
	}
	return tx.Moving(have, m, &sub, k.placeAt(&sub.SubscriptionSource, m.Next))
}

// placeAt returns positions in logs that have come there, with the events on which they rest.
func (k *Keeper) placeAt(source *storage.SubscriptionSource, next map[messages.PartitionID]uint64) []subsdb.Placed {
	all := make([]subsdb.Placed, 0, len(next))
	for id, offset := range next {
		all = append(all, subsdb.Placed{Partition: id, Position: subsdb.Position{Next: offset, Rests: k.witnessBefore(source, id, offset)}})
	}
	return all
}

// witnessBefore returns the event before an offset of a log that a subscription reads, zero if there is none,
// or if it cannot be read: nobody is kept from passing over damage.
func (k *Keeper) witnessBefore(source *storage.SubscriptionSource, id messages.PartitionID, offset uint64) (w format.Witness) {
	if offset <= 1 {
		return w
	}
	at, err := k.store.Place(source, id, offset-1)
	if err != nil {
		return w
	}
	// An error is told by whoever reads the event.
	_ = k.files.Log.Read(func(log *logdb.Reader) error {
		var v format.EventView
		if err := at.Read(log, &v); err != nil {
			return err
		}
		w = format.Witness{LSN: v.LSN, CRC: v.CRC}
		return nil
	})
	return w
}
