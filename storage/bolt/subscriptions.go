package bolt

import (
	"context"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/fetch"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
	"github.com/partita-go/partita/storage/replog"
)

var _ storage.Subscriptions = (*Store)(nil)

// SubscriptionNames implements [storage.Subscriptions]. It is an error if one is missing.
func (s *Store) SubscriptionNames(ctx context.Context) (names []string, err error) {
	if err := s.enterSubscriptions(ctx); err != nil {
		return nil, err
	}
	return s.subscriptions.Names()
}

// Subscription implements [storage.Subscriptions]. It is an error if the subscription is
// ahead of its log, or was, or if it stands in the log of another copy of the store.
func (s *Store) Subscription(ctx context.Context, name string) (storage.Subscription, error) {
	if err := s.enterSubscriptions(ctx); err != nil {
		return storage.Subscription{}, err
	}
	return s.subscriptions.Subscription(name)
}

// ParkedEvents implements [storage.Subscriptions]. It is an error if an event is missing from
// what is parked, where that is read in one piece.
func (s *Store) ParkedEvents(ctx context.Context, name string, after storage.ParkedEvent, limit int) (page []storage.ParkedEvent, err error) {
	if err := s.enterSubscriptions(ctx); err != nil {
		return nil, err
	}
	return s.subscriptions.Parked(name, after, limit)
}

// enterSubscriptions is enter for who is to read where subscriptions stand.
func (s *Store) enterSubscriptions(ctx context.Context) error {
	if err := s.enterRead(ctx); err != nil || replog.IsLocal(ctx) {
		return err
	}
	return s.subscriptions.AwaitTaken(ctx)
}

// PutSubscription implements [storage.Subscriptions].
func (s *Store) PutSubscription(ctx context.Context, sub storage.Subscription) error {
	if err := sub.Validate(&s.files.Descriptor); err != nil {
		return err
	}
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	return s.subscriptions.Put(ctx, sub)
}

// MoveSubscription implements [storage.Subscriptions].
func (s *Store) MoveSubscription(ctx context.Context, m storage.SubscriptionMove) error {
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	return s.subscriptions.Move(ctx, m)
}

// DeleteSubscription implements [storage.Subscriptions]. It deletes a damaged one too.
func (s *Store) DeleteSubscription(ctx context.Context, name string) error {
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	return s.subscriptions.Delete(ctx, name)
}

// followed is the store as its subscriptions see it: it implements [keeper.Store].
type followed struct{ *Store }

// LastLSN returns the end of the log.
func (s followed) LastLSN() messages.LSN { return messages.LSN(s.lastLSN.Load()) }

// Lost closes the store.
func (s followed) Lost(err error) { s.closeBy(err) }

// HasFailed reports whether a partition has.
func (s followed) HasFailed(id messages.PartitionID) bool {
	p := &s.partitions[id]
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.failed != nil
}

// Reaches reports whether the log that a subscription reads has come to an offset.
func (s followed) Reaches(source *storage.SubscriptionSource, id messages.PartitionID, offset uint64) (bool, error) {
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

// Place finds an event of a log that a subscription reads.
func (s followed) Place(source *storage.SubscriptionSource, id messages.PartitionID, offset uint64) (fetch.Place, error) {
	var all []fetch.Place
	var err error
	if ws := source.Workspace; ws != nil {
		o := messages.WLogOffset(offset)
		if all = s.partitionOf(*ws).wlogTail(*ws, o, o+1); len(all) == 0 {
			all, err = fetch.StoredWLog(s.state, *ws, o, o+1)
		}
	} else {
		o := messages.PLogOffset(offset)
		all, err = s.partitions[id].plogPlaces(s.state, o, o+1)
	}
	if err != nil {
		return fetch.Place{}, err
	}
	if len(all) != 1 {
		return fetch.Place{}, format.ErrMissing
	}
	return all[0], nil
}
