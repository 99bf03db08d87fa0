package actors

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/messages"
)

// Standing returns where the lane's status stands.
func (l *Lane) Standing() *Standing { return &l.standing }

// Interrupted publishes that the actor has failed, and waits to be restarted or has ended.
func (l *Lane) Interrupted(f Failure) {
	l.givenUp.Store(f.GivenUp)
	l.dog.end() // the deliverer ends with it
	l.standing.interrupted(f)
}

// show publishes what the lane's own status means. A lane changes that with every batch: nothing is told then.
func (l *Lane) show(lane *messages.LaneStatus) {
	if limit := l.limitOf(lane.State); limit > 0 {
		l.dog.begin(limit)
	} else {
		l.dog.end()
	}
	state, details := laneStanding(lane)
	l.stand(state, details, lane.Err)
}

func (l *Lane) stand(state messages.ActorState, details string, err error) {
	now, restarts := l.standing.Status(), max(l.incarnations.Load(), 1)-1
	if now.State == state && now.Details == details && now.Restarts == restarts {
		return
	}
	l.standing.change(func(s *messages.ActorStatus) {
		if s.State == messages.StateTerminating && state != messages.StateTerminated {
			return // it finishes what is under way
		}
		s.State, s.Details, s.Restarts, s.Err = state, details, restarts, err
	})
}

// bark publishes that the deliverer does not end what it does. That it has ended is told by show.
func (l *Lane) bark(lasts time.Duration) {
	if lasts == 0 {
		return
	}
	l.standing.change(func(s *messages.ActorStatus) {
		s.Details = fmt.Sprintf("%v for %s", l.Status().State, seconds(lasts))
		if s.State == messages.StateNormal {
			s.State = messages.StateAlarming
		}
	})
}

// limitOf is how long the deliverer may take for what it does in a state, 0 if that is not bounded.
func (l *Lane) limitOf(s messages.LaneState) time.Duration {
	switch s {
	case messages.LaneHandling:
		return l.config.HandlerLimit
	case messages.LaneLoading, messages.LaneReading, messages.LaneStoring:
		return l.config.AlarmAfter
	case messages.LaneWaiting, messages.LaneRetrying, messages.LaneHalted, messages.LaneHeld, messages.LaneFailed, messages.LaneEnded:
	}
	return 0
}

// laneStanding says what a lane's status means.
func laneStanding(s *messages.LaneStatus) (messages.ActorState, string) {
	switch s.State {
	case messages.LaneLoading:
		return messages.StateInitializing, textOf(s.Err)
	case messages.LaneHalted:
		return haltedStanding(s.Halted)
	case messages.LaneFailed:
		return messages.StateFailed, textOf(s.Err)
	case messages.LaneEnded:
		return messages.StateTerminated, ""
	case messages.LaneWaiting, messages.LaneReading, messages.LaneHandling, messages.LaneStoring, messages.LaneRetrying, messages.LaneHeld:
	}
	if s.Err != nil { // what is tried again has not succeeded yet
		return messages.StateAlarming, retryText(s)
	}
	return messages.StateNormal, ""
}

// paused is why somebody has halted a subscription. All other reasons are alarms.
const paused = "paused"

func haltedStanding(why string) (messages.ActorState, string) {
	if why == paused {
		return messages.StateNormal, why
	}
	return messages.StateAlarming, "stopped: " + why
}

func retryText(s *messages.LaneStatus) string {
	if s.Tries == 0 {
		return "is tried again: " + textOf(s.Err)
	}
	return fmt.Sprintf("event %d cannot be handled: %v, %s try", s.Next, s.Err, ordinal(int(s.Tries)))
}

// PID returns the actor's address.
func (l *Lane) PID() *actor.PID { return l.pid }
