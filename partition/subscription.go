package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// turn is what one at a time has.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits until nobody else has it.
func (t turn) take(ctx context.Context) (done func(), err error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Paused is why a subscription delivers nothing that somebody has paused.
const Paused = "paused"

// Subscription is a durable consumer that runs: its handler gets the events of each log in
// their order, one batch at a time. The next batch is handed over when it is durable that the
// one before was handled; so nothing is lost, and after a crash at most one batch of each log
// is delivered again. An event is not overtaken before it was handled or parked. All methods
// are safe for concurrent use; after the application was undeployed those that need its lanes
// return ErrStopped, and Status, Parked and Drop what the store says.
//
// Those that change where it stands wait until the handler has returned and what it has
// handled is stored: never call them from the handler. When ctx ends before, nothing was
// changed, unless the error is ErrOutcomeUnknown.
type Subscription struct {
	app    *App
	config SubscriptionConfig
	kept   kept
	// control is taken by whoever changes where the subscription stands.
	control turn

	mu    sync.Mutex
	lanes []*actors.Lane
}

// Name returns the subscription's name.
func (s *Subscription) Name() string { return s.config.Name }

func (s *Subscription) allLanes() []*actors.Lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lanes)
}

// reloadOthers is called when a lane has stopped the subscription.
func (s *Subscription) reloadOthers(p messages.PartitionID) {
	for _, lane := range s.allLanes() {
		if lane.Partition() != p {
			lane.Reload()
		}
	}
}

// lane returns the lane of a partition, or ErrSubscription.
func (s *Subscription) lane(p messages.PartitionID) (*actors.Lane, error) {
	for _, lane := range s.allLanes() {
		if lane.Partition() == p {
			return lane, nil
		}
	}
	return nil, fmt.Errorf("%w: %q does not read partition %d", storage.ErrSubscription, s.Name(), p)
}

// change holds lanes, changes what the store says, and lets them go on from there.
func (s *Subscription) change(ctx context.Context, lanes []*actors.Lane, change func() error) error {
	done, err := s.control.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	defer func() {
		for _, lane := range lanes {
			if lane.Status().State != messages.LaneEnded {
				lane.Release()
			}
		}
	}()
	if err := together(len(lanes), func(i int) error { return lanes[i].Hold(ctx) }); err != nil {
		return err
	}
	return change()
}

// Pause delivers nothing more, also after a restart, until Resume. The batch under way is
// finished first. One that has stopped keeps the reason.
func (s *Subscription) Pause(ctx context.Context) error {
	return s.change(ctx, s.allLanes(), func() error { return s.kept.Pause(ctx) })
}

// Resume goes on after Pause, after an event because of which the subscription has stopped
// (which is tried again), and with a lane that has failed.
func (s *Subscription) Resume(ctx context.Context) error {
	return s.change(ctx, s.allLanes(), func() error { return s.kept.Resume(ctx) })
}

// Rewind sets the next offset of a log to be delivered, which may also lie ahead: of a
// partition, or of the workspace that is read, which stands under its partition. What is
// parked from there on is parked no more. A subscription that is paused, or has stopped,
// stays so. It returns ErrSubscription of package storage if the subscription does not read
// the log, or the log does not go that far.
func (s *Subscription) Rewind(ctx context.Context, p messages.PartitionID, offset uint64) error {
	lane, err := s.lane(p)
	if err != nil {
		return err
	}
	return s.change(ctx, []*actors.Lane{lane}, func() error { return s.kept.Rewind(ctx, p, offset) })
}

// SkipToEnd goes behind the last event of each log.
func (s *Subscription) SkipToEnd(ctx context.Context) error {
	return s.change(ctx, s.allLanes(), func() error { return s.kept.SkipToEnd(ctx) })
}

// Delete ends the subscription and forgets where it stands and what it has parked.
func (s *Subscription) Delete(ctx context.Context) error {
	return s.change(ctx, s.allLanes(), func() error {
		err := s.kept.Delete(ctx)
		if err != nil && !errors.Is(err, storage.ErrNoSubscription) {
			return err
		}
		// One that is not there has nothing to deliver either: the name must become free.
		defer s.app.forget(s)
		// It is deleted: the end of ctx must not make that a failure.
		return errors.Join(err, s.stop(context.WithoutCancel(ctx), s.app.stopLimit()))
	})
}

// End ends the subscription, which stays where it is: Subscribe goes on from there. The
// batch under way is finished, but not waited for longer than the setting StopLimit: what
// was not stored until then is delivered again. ErrNotClean says that it is so, or that a
// handler hangs and was left behind.
func (s *Subscription) End(ctx context.Context) error {
	defer s.app.forget(s)
	limit := s.app.stopLimit()
	err := s.stop(ctx, limit)
	// Whoever changes where it stands may still be writing: the next one of that name would not
	// know of it, and store what it knows over it.
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if done, busy := s.control.take(limited); busy == nil {
		done()
	}
	return err
}

func (s *Subscription) stop(ctx context.Context, limit time.Duration) error {
	lanes := s.allLanes()
	return together(len(lanes), func(i int) error {
		if err := lanes[i].Stop(ctx, limit); err != nil {
			return fmt.Errorf("%w: subscription %q, partition %d: %w", ErrNotClean, s.Name(), lanes[i].Partition(), err)
		}
		return nil
	})
}

func (a *App) stopLimit() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settings.StopLimit
}
