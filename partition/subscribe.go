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

// Subscribe starts a subscription, which goes on from where the one of that name has stood,
// or is made if there is none. It ends with the application, and goes on at the next
// Subscribe.
//
// It returns ErrSubscribed; ErrKeepsNone; ErrSettings of package messages if a setting is
// wrong; ErrSubscription of package storage if it cannot read what it is to read, or the one
// of that name reads something else; ErrNotOwned; ErrStopped; the store's error.
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
	if err := a.mustOwn(&c); err != nil {
		return nil, err
	}
	// Whoever changes one that does not run must be done with it.
	done, err := a.starting.take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	s := &Subscription{app: a, config: c, kept: a.kept(c.Name, store), control: newTurn()}
	if err := a.reserve(s); err != nil {
		return nil, err
	}
	err = s.put(ctx)
	if err == nil {
		err = a.startSubscription(s)
	}
	if err != nil {
		a.forget(s)
		return nil, err
	}
	return s, nil
}

// mustOwn returns ErrNotOwned if a subscription reads nothing but what is elsewhere.
func (a *App) mustOwn(c *SubscriptionConfig) error {
	p := c.Partition
	if c.Workspace != nil {
		p = new(a.PartitionOf(*c.Workspace))
	}
	if p == nil || uint32(*p) >= a.app.Partitions || a.Owns(*p) {
		return nil // what cannot be read at all, the store says
	}
	return fmt.Errorf("%w: subscription %q reads partition %d", ErrNotOwned, c.Name, *p)
}

func (a *App) kept(name string, store storage.Subscriptions) kept {
	return kept{name: name, store: store, reader: a.Reader(), now: a.parts.options.Clock.Now}
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
		a.hideLanes(s.allLanes())
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
	a.showLanes(s.allLanes())
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
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	all := a.Subscriptions()
	err := together(len(all), func(i int) error { return all[i].stop(ctx, limit) })
	// Whoever changes one that does not run may still be writing: the next deployment's would not
	// know of it.
	if done, busy := a.starting.take(limited); busy == nil {
		done()
	}
	return err
}

// put makes the subscription, or checks that the one which is there reads the same.
func (s *Subscription) put(ctx context.Context) error {
	made := storage.Subscription{Name: s.config.Name, SubscriptionSource: s.config.source()}
	if s.config.From == FromNow {
		if err := made.Validate(&s.app.app.Descriptor); err != nil {
			return err
		}
		// One that is there stays where it is, also where the end of a log is not known.
		_, err := s.kept.load(ctx)
		if !errors.Is(err, storage.ErrNoSubscription) {
			return s.kept.store.PutSubscription(ctx, made)
		}
		if made.Next, err = s.kept.ends(ctx, &made.SubscriptionSource); err != nil {
			return err
		}
	}
	return s.kept.store.PutSubscription(ctx, made)
}

// spawn starts a lane for each log. Serial tells them from those of an earlier start, which
// may have been left behind.
func (s *Subscription) spawn(serial uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	source := s.config.source()
	for _, p := range s.kept.partitions(&source) {
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
	key := actors.Key{Group: laneGroup, ID: fmt.Sprintf("%s/%d", c.Name, p)}
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
		Store:        subscriptionStore{Subscriptions: s.kept.store, Store: s.app.store},
		System:       parts.system,
		Guardian:     parts.guardianOf(laneGroup),
		Dispatcher:   parts.dispatcher,
		Clock:        parts.options.Clock,
		Logger:       parts.loggerOf(s.app.Name(), key.Group),
		Traces:       parts.traces(),
		Observer:     parts.options.Observer,
		Alert:        func() { s.reloadOthers(p) },

		AlarmAfter:    parts.options.AlarmAfter,
		Restart:       parts.options.policyOf(laneGroup).String(),
		Tally:         s.app.tally,
		StatusChanged: s.app.changes.tell,
	}
}

// subscriptionStore is a store that keeps subscriptions.
type subscriptionStore struct {
	storage.Subscriptions
	storage.Store
}
