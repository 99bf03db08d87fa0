package partition

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/partita-go/partita/messages"
)

// SubscriptionStatus says where a subscription stands.
type SubscriptionStatus struct {
	Name   string
	Source SubscriptionSource
	State  SubscriptionState
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
	// Err is the error of the first lane that has one, nil if none has.
	Err error
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

// SubscriptionState is what a subscription does, all lanes together.
type SubscriptionState uint8

// The states of a subscription.
const (
	// SubscriptionRunning: it delivers, or waits for events, or to try again.
	SubscriptionRunning SubscriptionState = iota
	// SubscriptionPaused: somebody has paused it.
	SubscriptionPaused
	// SubscriptionStopped: it has stopped because of an event.
	SubscriptionStopped
	// SubscriptionFailed: a lane has failed, or it cannot be told where it stands.
	SubscriptionFailed
	// SubscriptionNotRunning: nobody has subscribed, here at least; it keeps its position.
	SubscriptionNotRunning
)

func (s SubscriptionState) String() string {
	names := [...]string{"running", "paused", "stopped", "failed", "not-running"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// stateOf returns the state of a subscription by what is stored and what its lanes do.
func stateOf(stopped string, lanes []LaneStatus) SubscriptionState {
	is := func(state messages.LaneState) func(LaneStatus) bool {
		return func(l LaneStatus) bool { return l.State == state }
	}
	switch {
	case stopped == Paused:
		return SubscriptionPaused
	case stopped != "":
		return SubscriptionStopped
	case slices.ContainsFunc(lanes, is(messages.LaneFailed)):
		return SubscriptionFailed
	case slices.ContainsFunc(lanes, is(messages.LaneEnded)):
		return SubscriptionNotRunning
	}
	return SubscriptionRunning
}

// Status returns where the subscription stands. It reads the store, for the lag. With an error
// it returns what is known all the same.
func (s *Subscription) Status(ctx context.Context) (SubscriptionStatus, error) {
	now, err := s.kept.load(ctx)
	if err != nil {
		return s.kept.unknown(&now), err
	}
	var lanes []LaneStatus
	for _, lane := range s.allLanes() {
		lanes = append(lanes, LaneStatus{Partition: lane.Partition(), LaneStatus: lane.Status()})
	}
	return s.kept.status(ctx, &now, lanes)
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
