package partition

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// ParkedEvent is an event that a subscription has given up, and why.
type ParkedEvent = storage.ParkedEvent

// Parked gives the events that the subscription could not handle, as of the beginning of
// the loop, in order of partition and offset. It ends after the first error.
func (s *Subscription) Parked(ctx context.Context) iter.Seq2[ParkedEvent, error] {
	return func(yield func(ParkedEvent, error) bool) {
		now, err := s.store.Subscription(ctx, s.Name())
		if err != nil {
			yield(ParkedEvent{}, err)
			return
		}
		for _, e := range now.Parked {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Replay hands a parked event to the handler once more, alone, between two batches of its
// log, and also while the subscription is paused or has stopped. If that succeeds it is
// parked no more; else it stays, with the new reason, and Replay returns the handler's error.
// It returns ErrNotParked if the event is not parked.
func (s *Subscription) Replay(ctx context.Context, e ParkedEvent) error {
	lane, err := s.lane(e.Partition)
	if err != nil {
		return err
	}
	return s.change(ctx, []*actors.Lane{lane}, func() error {
		parked, err := s.parked(ctx, e)
		if err != nil {
			return err
		}
		event, err := s.event(ctx, parked)
		if err != nil {
			return err
		}
		if err := lane.Try(ctx, event); err != nil {
			return s.notReplayed(ctx, parked, err)
		}
		return s.move(ctx, storage.SubscriptionMove{Unpark: []ParkedEvent{parked}})
	})
}

// notReplayed notes why a parked event has failed once more, if it was handed over.
func (s *Subscription) notReplayed(ctx context.Context, e ParkedEvent, why error) error {
	if errors.Is(why, ErrStopped) || errors.Is(why, messages.ErrInterrupted) || ctx.Err() != nil {
		return why
	}
	e.Reason, e.At = why.Error(), messages.TimestampOf(s.app.parts.options.Clock.Now())
	e.Tries++
	return errors.Join(why, s.move(ctx, storage.SubscriptionMove{Park: []ParkedEvent{e}}))
}

// Drop forgets a parked event: it will not be handled. It returns ErrNotParked if the event
// is not parked.
func (s *Subscription) Drop(ctx context.Context, e ParkedEvent) error {
	return s.change(ctx, nil, func() error {
		parked, err := s.parked(ctx, e)
		if err != nil {
			return err
		}
		return s.move(ctx, storage.SubscriptionMove{Unpark: []ParkedEvent{parked}})
	})
}

// parked returns the parked event of a partition and offset.
func (s *Subscription) parked(ctx context.Context, e ParkedEvent) (ParkedEvent, error) {
	now, err := s.store.Subscription(ctx, s.Name())
	if err != nil {
		return ParkedEvent{}, err
	}
	i := slices.IndexFunc(now.Parked, func(o ParkedEvent) bool { return e.Compare(&o) == 0 })
	if i < 0 {
		return ParkedEvent{}, fmt.Errorf("%w: %q: partition %d, offset %d", ErrNotParked, s.Name(), e.Partition, e.Offset)
	}
	return now.Parked[i], nil
}

// event reads an event of a log that the subscription reads.
func (s *Subscription) event(ctx context.Context, e ParkedEvent) (messages.LogEvent, error) {
	var event messages.Event
	var err error
	if ws := s.config.Workspace; ws != nil {
		event, err = s.app.Reader().WorkspaceEvent(ctx, *ws, messages.WLogOffset(e.Offset))
	} else {
		event, err = s.app.Reader().PartitionEvent(ctx, e.Partition, messages.PLogOffset(e.Offset))
	}
	return messages.LogEvent{Offset: e.Offset, Event: event}, err
}
