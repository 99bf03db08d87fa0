package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Errors of subscriptions. [storage.ErrNoSubscription] and [storage.ErrSubscription] belong to
// them too.
var (
	// ErrSubscribed is returned when a subscription of that name runs already.
	ErrSubscribed = errors.New("subscription runs already")
	// ErrKeepsNone is returned when the application's store keeps no subscriptions.
	ErrKeepsNone = errors.New("store keeps no subscriptions")
	// ErrNotParked is returned when an event is not parked.
	ErrNotParked = errors.New("event is not parked")
)

// BatchError is returned by a [DeliveryHandler] that knows which event it could not handle:
// those before it count as handled.
type BatchError = actors.BatchError

// Subscribe starts a subscription, which goes on from where the one of that name has stood,
// or is made if there is none. It ends with the application, and goes on at the next
// Subscribe.
//
// It returns ErrSubscribed; ErrKeepsNone; ErrSettings of package messages if a setting is
// wrong; ErrSubscription of package storage if it cannot read what it is to read, or the one
// of that name reads something else; ErrStopped; the store's error.
func (a *App) Subscribe(ctx context.Context, c SubscriptionConfig) (*Subscription, error) {
	c = c.WithDefaults()
	c.own()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	store, ok := a.store.(storage.Subscriptions)
	if !ok {
		return nil, fmt.Errorf("%w: %T", ErrKeepsNone, a.store)
	}
	s := &Subscription{app: a, config: c, store: store, control: make(chan struct{}, 1)}
	if err := a.reserve(s); err != nil {
		return nil, err
	}
	err := s.put(ctx)
	if err == nil {
		err = a.startSubscription(s)
	}
	if err != nil {
		a.forget(s)
		return nil, err
	}
	return s, nil
}

// reserve takes a name.
func (a *App) reserve(s *Subscription) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopping {
		return ErrStopped
	}
	if _, twice := a.subscriptions[s.config.Name]; twice {
		return fmt.Errorf("%w: %q", ErrSubscribed, s.config.Name)
	}
	if a.subscriptions == nil {
		a.subscriptions = make(map[string]*Subscription)
	}
	a.subscriptions[s.config.Name] = s
	return nil
}

// forget frees the name.
func (a *App) forget(s *Subscription) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.subscriptions[s.config.Name] == s {
		delete(a.subscriptions, s.config.Name)
	}
}

// startSubscription spawns the lanes, unless the application is being stopped: that ends
// those which it finds.
func (a *App) startSubscription(s *Subscription) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopping {
		return ErrStopped
	}
	a.started++
	if err := s.spawn(a.started); err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), a.settings.StopLimit)
		defer cancel()
		return errors.Join(err, s.stop(ctx, 0))
	}
	return nil
}

// Subscriptions returns the subscriptions that run, in order of their names. One that is
// being started is not among them: nothing could hold or end lanes that are not there yet.
func (a *App) Subscriptions() []*Subscription {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]*Subscription, 0, len(a.subscriptions))
	for _, s := range a.subscriptions {
		if len(s.allLanes()) > 0 {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(s, o *Subscription) int { return strings.Compare(s.Name(), o.Name()) })
	return all
}

// stopSubscriptions lets each handler finish, so long at the most as the stop limit.
func (a *App) stopSubscriptions(ctx context.Context, limit time.Duration) error {
	all := a.Subscriptions()
	return together(len(all), func(i int) error { return all[i].stop(ctx, limit) })
}

// put makes the subscription, or checks that the one which is there reads the same.
func (s *Subscription) put(ctx context.Context) error {
	made := storage.Subscription{Name: s.config.Name, SubscriptionSource: s.config.source()}
	if s.config.From == FromNow {
		if err := made.Validate(&s.app.app.Descriptor); err != nil {
			return err
		}
		// One that is there stays where it is, also where the end of a log is not known.
		_, err := s.store.Subscription(ctx, made.Name)
		if !errors.Is(err, storage.ErrNoSubscription) {
			return s.store.PutSubscription(ctx, made)
		}
		if made.Next, err = s.ends(ctx); err != nil {
			return err
		}
	}
	return s.store.PutSubscription(ctx, made)
}

// ends returns the positions behind the last event of each log.
func (s *Subscription) ends(ctx context.Context) (map[messages.PartitionID]uint64, error) {
	next := make(map[messages.PartitionID]uint64)
	for _, p := range s.partitions() {
		end, err := s.end(ctx, p)
		if err != nil {
			return nil, err
		}
		next[p] = end + 1
	}
	return next, nil
}

// end returns the offset of the last event of a log.
func (s *Subscription) end(ctx context.Context, p messages.PartitionID) (uint64, error) {
	if ws := s.config.Workspace; ws != nil {
		numbers, err := s.app.Reader().Numbers(ctx, *ws)
		if err != nil {
			return 0, err
		}
		for _, n := range numbers.Numbers {
			if n.Seq == messages.SeqWLogOffset {
				return uint64(n.Number), nil
			}
		}
		return 0, nil
	}
	end, err := s.app.Reader().End(ctx, p)
	return uint64(end), err
}

// partitions returns those whose events are delivered.
func (s *Subscription) partitions() []messages.PartitionID {
	source := s.config.source()
	var all []messages.PartitionID
	for p := range messages.PartitionID(s.app.app.Partitions) {
		if source.Reads(&s.app.app.Descriptor, p) {
			all = append(all, p)
		}
	}
	return all
}

// spawn starts a lane for each log. Serial tells them from those of an earlier start, which
// may have been left behind.
func (s *Subscription) spawn(serial uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.partitions() {
		lane, err := actors.SpawnLane(s.laneConfig(p, serial), s.app.parts.ports)
		if err != nil {
			return err
		}
		s.lanes = append(s.lanes, lane)
	}
	return nil
}

func (s *Subscription) laneConfig(p messages.PartitionID, serial uint64) actors.LaneConfig {
	c, parts := &s.config, s.app.parts
	key := actors.Key{Group: "lane", ID: fmt.Sprintf("%s/%d", c.Name, p)}
	return actors.LaneConfig{
		Key:          key,
		Name:         fmt.Sprintf("%s/%d", s.app.name(key), serial),
		Lane:         c.lane(p, s.app.deployment),
		Subscription: c.Name,
		Workspace:    c.Workspace,
		Kinds:        c.Kinds,
		Batch:        c.Batch,
		Bytes:        c.Bytes,
		HandlerLimit: c.HandlerLimit,
		Handler:      c.deliver(s.app.Name(), p),
		Store:        subscriptionStore{Subscriptions: s.store, Store: s.app.store},
		System:       parts.system,
		Guardian:     parts.guardian,
		Dispatcher:   parts.dispatcher,
		Clock:        parts.options.Clock,
		Logger:       parts.options.Logger.Named(s.app.app.Descriptor.Application),
		Observer:     parts.options.Observer,
		Alert:        func() { s.reloadOthers(p) },
	}
}

// subscriptionStore is a store that keeps subscriptions.
type subscriptionStore struct {
	storage.Subscriptions
	storage.Store
}
