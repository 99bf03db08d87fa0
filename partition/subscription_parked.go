package partition

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// ParkedEvent is an event that a subscription has given up, and why.
type ParkedEvent = storage.ParkedEvent

// Parked gives the events that the subscription could not handle, in order of partition and
// offset. It reads them in pieces: what is parked, replayed or dropped during the loop may be
// among them or not. It ends after the first error.
func (s *Subscription) Parked(ctx context.Context) iter.Seq2[ParkedEvent, error] {
	return s.kept.allParked(ctx, ParkedEvent{})
}

// Replay hands a parked event to the handler once more, alone, between two batches of its
// log, and also while the subscription is paused or has stopped. If that succeeds it is
// parked no more; else it stays, with the new reason, and Replay returns ErrNotHandled and
// the handler's error. It returns ErrNotParked if the event is not parked.
func (s *Subscription) Replay(ctx context.Context, e ParkedEvent) error {
	lane, err := s.lane(e.Partition)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotParked, err)
	}
	return s.change(ctx, []*actors.Lane{lane}, func() error {
		parked, err := s.kept.parked(ctx, e)
		if err != nil {
			return err
		}
		now, err := s.kept.load(ctx)
		if err != nil {
			return err
		}
		event, err := s.kept.event(ctx, &now.SubscriptionSource, parked.Partition, parked.Offset)
		if err != nil {
			return err
		}
		if err := lane.Try(ctx, event); err != nil {
			return s.notReplayed(ctx, parked, err)
		}
		return s.kept.move(ctx, storage.SubscriptionMove{Unpark: []ParkedEvent{parked}})
	})
}

// notReplayed notes why a parked event has failed once more, if it was handed over.
func (s *Subscription) notReplayed(ctx context.Context, e ParkedEvent, why error) error {
	if errors.Is(why, ErrStopped) || errors.Is(why, messages.ErrInterrupted) || ctx.Err() != nil {
		return why
	}
	e.Reason, e.At = why.Error(), messages.TimestampOf(s.kept.now())
	e.Tries++
	return errors.Join(fmt.Errorf("%w: %w", ErrNotHandled, why), s.kept.move(ctx, storage.SubscriptionMove{Park: []ParkedEvent{e}}))
}

// Drop forgets a parked event: it will not be handled. It returns ErrNotParked if the event
// is not parked.
func (s *Subscription) Drop(ctx context.Context, e ParkedEvent) error {
	return s.change(ctx, nil, func() error { return s.kept.Drop(ctx, e) })
}
