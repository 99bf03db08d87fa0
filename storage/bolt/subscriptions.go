package bolt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

var _ storage.Subscriptions = (*Store)(nil)

// subscriptions are those of a store, in a file of their own that is made with the first.
type subscriptions struct {
	requests chan *subscriptionRequest
	// ended is closed when the keeper has ended.
	ended chan struct{}
}

// SubscriptionNames implements [storage.Subscriptions]. It is an error if one is missing.
func (s *Store) SubscriptionNames(ctx context.Context) (names []string, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	err = subsdb.View(s.files.Subscriptions.Load(), func(tx subsdb.Tx) error {
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

// Subscription implements [storage.Subscriptions]. It is an error if the subscription is
// ahead of its log, or was, or if it stands in the log of another copy of the store.
func (s *Store) Subscription(ctx context.Context, name string) (storage.Subscription, error) {
	if err := s.enter(ctx); err != nil {
		return storage.Subscription{}, err
	}
	var found *storage.Subscription
	err := subsdb.View(s.files.Subscriptions.Load(), func(tx subsdb.Tx) error {
		var positions []subsdb.Placed
		var err error
		if found, positions, err = tx.Standing(name); err == nil {
			err = tx.OfLog(name, subsdb.CheckRests(s.log, positions, messages.LSN(s.lastLSN.Load())))
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
	if err := s.checkPositions(found, s.judgeable(found.Next)); err != nil {
		return *found, ahead(s.files.Subscriptions.Load(), found, err)
	}
	return *found, nil
}

// ParkedEvents implements [storage.Subscriptions]. It is an error if an event is missing from
// what is parked, where that is read in one piece.
func (s *Store) ParkedEvents(ctx context.Context, name string, after storage.ParkedEvent, limit int) (page []storage.ParkedEvent, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	there := false
	err = subsdb.View(s.files.Subscriptions.Load(), func(tx subsdb.Tx) error {
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
// it is not the position that is wrong: who reads that log is told what is, and those of
// other partitions do not suffer.
func (s *Store) judgeable(next map[messages.PartitionID]uint64) map[messages.PartitionID]uint64 {
	known := make(map[messages.PartitionID]uint64, len(next))
	for id, offset := range next {
		p := &s.partitions[id]
		p.mu.RLock()
		if p.failed == nil {
			known[id] = offset
		}
		p.mu.RUnlock()
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

// PutSubscription implements [storage.Subscriptions].
func (s *Store) PutSubscription(ctx context.Context, sub storage.Subscription) error {
	if err := sub.Validate(&s.files.Descriptor); err != nil {
		return err
	}
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	changes := subsdb.NewSubscription(&sub) // all but the positions
	sub = storage.Subscription{Name: sub.Name, SubscriptionSource: subsdb.OwnSource(sub.SubscriptionSource), Next: maps.Clone(sub.Next)}
	return s.keep(ctx, &subscriptionRequest{puts: true, judge: func(tx subsdb.Tx) ([]subsdb.Change, error) {
		have, err := tx.Definition(sub.Name)
		switch {
		case err != nil:
			return nil, err
		case have == nil:
			if err := s.checkPositions(&sub, sub.Next); err != nil {
				return nil, err
			}
			for _, at := range s.placeAt(&sub.SubscriptionSource, sub.Next) {
				changes = append(changes, subsdb.PositionChange(sub.Name, at))
			}
			return tx.Counting(1, changes)
		case !have.Equal(&sub.SubscriptionSource):
			return nil, fmt.Errorf("%w: %q is there, and reads something else", storage.ErrSubscription, sub.Name)
		}
		return nil, nil
	}})
}

// MoveSubscription implements [storage.Subscriptions].
func (s *Store) MoveSubscription(ctx context.Context, m storage.SubscriptionMove) error {
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	m = subsdb.OwnMove(m)
	return s.keep(ctx, &subscriptionRequest{judge: func(tx subsdb.Tx) ([]subsdb.Change, error) {
		have, err := tx.Definition(m.Name)
		switch {
		case err != nil:
			return nil, err
		case have == nil:
			return nil, noSubscription(m.Name)
		}
		return s.judgeMove(tx, have, &m)
	}})
}

// DeleteSubscription implements [storage.Subscriptions]. It deletes a damaged one too.
func (s *Store) DeleteSubscription(ctx context.Context, name string) error {
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	return s.keep(ctx, &subscriptionRequest{judge: func(tx subsdb.Tx) ([]subsdb.Change, error) {
		if tx.Subscriptions.Get([]byte(name)) == nil {
			if err := tx.CheckAbsent(name); err != nil {
				return nil, err
			}
			return nil, noSubscription(name)
		}
		return tx.Counting(-1, tx.Deletions(name))
	}})
}

// checkPositions refuses positions beyond the next events of their logs.
func (s *Store) checkPositions(sub *storage.Subscription, next map[messages.PartitionID]uint64) error {
	for p, offset := range next {
		if offset <= 1 {
			continue
		}
		there, err := s.reaches(&sub.SubscriptionSource, p, offset-1)
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

// reaches reports whether the log that a subscription reads has come to an offset.
func (s *Store) reaches(source *storage.SubscriptionSource, id messages.PartitionID, offset uint64) (bool, error) {
	if ws := source.Workspace; ws != nil {
		o := messages.WLogOffset(offset)
		if there, known, _ := s.partitions[id].hasWLog(*ws, o); there || known {
			return there, nil
		}
		last, err := statedb.WLogEnd(s.state, *ws)
		return last >= o, err
	}
	p := &s.partitions[id]
	p.mu.RLock()
	defer p.mu.RUnlock()
	return uint64(p.last) >= offset, nil
}

// judgeMove returns the changes of a move, or why it is refused.
func (s *Store) judgeMove(tx subsdb.Tx, have *format.Definition, m *storage.SubscriptionMove) ([]subsdb.Change, error) {
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
	if err := sub.ValidateMove(&s.files.Descriptor, m); err != nil {
		return nil, err
	}
	if err := s.checkPositions(&sub, m.Next); err != nil {
		return nil, err
	}
	return tx.Moving(have, m, &sub, s.placeAt(&sub.SubscriptionSource, m.Next))
}

// placeAt returns positions in logs that have come there, with the events on which they rest.
func (s *Store) placeAt(source *storage.SubscriptionSource, next map[messages.PartitionID]uint64) []subsdb.Placed {
	all := make([]subsdb.Placed, 0, len(next))
	for id, offset := range next {
		all = append(all, subsdb.Placed{Partition: id, Position: subsdb.Position{Next: offset, Rests: s.witnessBefore(source, id, offset)}})
	}
	return all
}

// witnessBefore returns the event before an offset of a log that a subscription reads, zero if there is none,
// or if it cannot be read: nobody is kept from passing over damage.
func (s *Store) witnessBefore(source *storage.SubscriptionSource, id messages.PartitionID, offset uint64) (w format.Witness) {
	if offset <= 1 {
		return w
	}
	at, err := s.placeOfEvent(source, id, offset-1)
	if err != nil {
		return w
	}
	// An error is told by who reads the event.
	_ = s.log.Read(func(log *logdb.Reader) error {
		var v format.EventView
		if err := v.Decode(at.lsn, log.Value(at.lsn)); err != nil {
			return err
		}
		if err := at.check(&v); err != nil {
			return err
		}
		w = format.Witness{LSN: v.LSN, CRC: v.CRC}
		return nil
	})
	return w
}

// placeOfEvent finds an event of a log that a subscription reads.
func (s *Store) placeOfEvent(source *storage.SubscriptionSource, id messages.PartitionID, offset uint64) (place, error) {
	var all []place
	var err error
	if ws := source.Workspace; ws != nil {
		o := messages.WLogOffset(offset)
		if all = s.partitionOf(*ws).wlogTail(*ws, o, o+1); len(all) == 0 {
			all, err = storedWLog(s.state, *ws, o, o+1)
		}
	} else {
		o := messages.PLogOffset(offset)
		all, err = s.partitions[id].plogPlaces(s.state, o, o+1)
	}
	if err != nil {
		return place{}, err
	}
	if len(all) != 1 {
		return place{}, format.ErrMissing
	}
	return all[0], nil
}

// checkOwnPositions makes sure that all positions are of this log. One that is damaged is an error of whoever reads it.
func (s *Store) checkOwnPositions() error {
	return subsdb.View(s.files.Subscriptions.Load(), func(tx subsdb.Tx) error {
		names, err := tx.Names()
		for i := 0; err == nil && i < len(names); i++ {
			sub, positions, damage := tx.Standing(names[i])
			if sub != nil && damage == nil {
				err = tx.OfLog(names[i], subsdb.CheckRests(s.log, positions, messages.LSN(s.lastLSN.Load())))
			}
		}
		if errors.Is(err, subsdb.ErrOtherPositions) {
			return err
		}
		return nil
	})
}
