package partition

import (
	"context"
	"errors"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// SubscriptionStatus says where a subscription stands.
type SubscriptionStatus struct {
	Name string
	// Stopped says why it delivers nothing: "" if it does, [Paused], or the event because of
	// which it has stopped.
	Stopped string
	// Parked is how many events are parked.
	Parked int
	// Lag is that of all lanes together, Behind that of the lane that is furthest behind.
	Lag    uint64
	Behind time.Duration
	// Delivered counts the events that were handled since Subscribe.
	Delivered uint64
	// Lanes are one for each log, in order of their partitions.
	Lanes []LaneStatus
}

// LaneStatus says where a subscription stands in one log.
type LaneStatus struct {
	Partition messages.PartitionID
	messages.LaneStatus
	// Lag is how many events of the log were not handled, parked or passed over yet; among
	// them may be some of other kinds than the subscription's.
	Lag uint64
	// Behind is how long ago the oldest of them was registered.
	Behind time.Duration
}

// Status returns where the subscription stands. It reads the store, for the lag.
func (s *Subscription) Status(ctx context.Context) (SubscriptionStatus, error) {
	stored, err := s.store.Subscription(ctx, s.Name())
	if err != nil {
		return SubscriptionStatus{}, err
	}
	all := SubscriptionStatus{Name: s.Name(), Stopped: stored.Stopped, Parked: len(stored.Parked)}
	for _, lane := range s.allLanes() {
		one, err := s.laneStatus(ctx, lane, &stored)
		if err != nil {
			return SubscriptionStatus{}, err
		}
		all.Lag += one.Lag
		all.Behind = max(all.Behind, one.Behind)
		all.Delivered += one.Delivered
		all.Lanes = append(all.Lanes, one)
	}
	return all, nil
}

func (s *Subscription) laneStatus(ctx context.Context, lane *actors.Lane, stored *storage.Subscription) (LaneStatus, error) {
	one := LaneStatus{Partition: lane.Partition(), LaneStatus: lane.Status()}
	if one.Next == 0 || !delivers(one.State) {
		// It has not asked yet, or what it knows may be out of date.
		one.Next = stored.Position(one.Partition)
	}
	end, err := s.end(ctx, one.Partition)
	switch {
	case errors.Is(err, storage.ErrDamaged), errors.Is(err, storage.ErrConflict):
		return one, nil // the partition has failed: the lane's own error says so
	case err != nil || end < one.Next:
		return one, err
	}
	one.Lag = end - one.Next + 1
	oldest, err := s.event(ctx, ParkedEvent{Partition: one.Partition, Offset: one.Next})
	switch {
	case errors.Is(err, storage.ErrDamaged):
		return one, nil // it is the lane's own error
	case err != nil:
		return one, err
	}
	one.Behind = max(0, s.app.parts.options.Clock.Now().Sub(oldest.Event.RegisteredAt.Time()))
	return one, nil
}

// delivers reports whether a lane knows best where it stands.
func delivers(s messages.LaneState) bool {
	switch s {
	case messages.LaneWaiting, messages.LaneReading, messages.LaneHandling, messages.LaneStoring, messages.LaneRetrying:
		return true
	case messages.LaneLoading, messages.LaneHalted, messages.LaneHeld, messages.LaneFailed, messages.LaneEnded:
	}
	return false
}
