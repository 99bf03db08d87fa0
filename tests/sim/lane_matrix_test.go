package sim

import (
	"context"
	"slices"
	"time"

	"github.com/partita-go/partita/messages"
)

// laneColumns are the states of a lane.
const laneColumns = int(messages.LaneEnded) + 1

// laneView is that of subscriptions: what a lane was doing when a fault struck.
func laneView() view {
	v := view{has: fault.strikesLanes, impossible: func(f fault, c int) string { return impossibleOfLane(f, messages.LaneState(c)) }}
	for c := range laneColumns {
		v.columns = append(v.columns, messages.LaneState(c).String())
	}
	return v
}

// impossibleOfLane says why a fault cannot strike in a state, "" if it can.
func impossibleOfLane(f fault, c messages.LaneState) string {
	if f >= faultHandler && c != messages.LaneHandling {
		return "the handler is called while the lane is handling"
	}
	if f >= faultCrash {
		return ""
	}
	interrupted := c == messages.LaneLoading || c == messages.LaneHeld || c == messages.LaneHandling || c == messages.LaneEnded
	switch o := op(f / fault(modes)); {
	case o == opMove && c != messages.LaneStoring:
		return "a lane that stores waits for it"
	case o == opAwait && c != messages.LaneWaiting:
		return "who goes on from waiting ends the wait first"
	case o == opLoad && !interrupted, o == opRead && c != messages.LaneReading && !interrupted:
		return "the deliverer must have answered it before the lane can get there"
	case o.byKeeper() && c != messages.LaneHeld && c != messages.LaneEnded:
		return "the lanes are held meanwhile, or were stopped"
	}
	return ""
}

// laneAim is a cell of the matrix of subscriptions that a run tries to hit more often than
// chance would.
type laneAim struct {
	fault fault
	state messages.LaneState
	// left is how often it is still to be hit, so that the run gets on.
	left int
}

// chooseLaneAim gives two of three runs that have a subscription an aim: a call of the store
// in a state to which it does not belong.
func (s *sim) chooseLaneAim() {
	if len(s.consumers) == 0 || s.random.IntN(3) == 0 {
		return
	}
	for {
		a := laneAim{fault: fault(s.random.IntN(int(faultCrash))), state: messages.LaneState(s.random.IntN(laneColumns)), left: 3}
		if o := op(a.fault / fault(modes)); o == opMove || o == opAwait || !a.fault.strikesLanes() {
			continue
		}
		if impossibleOfLane(a.fault, a.state) == "" {
			s.laneAim = a
			break
		}
	}
	s.rates[rateChange] = max(s.rates[rateChange], 0.4)
	if s.laneAim.state == messages.LaneEnded {
		s.rates[rateRestart] = max(s.rates[rateRestart], 0.3)
	}
	if s.laneAim.state == messages.LaneHandling {
		for _, c := range s.consumers {
			c.poison, c.lane.MaxTries, c.lane.StopOnPoison = 2, 1, false // what is parked can be replayed
		}
	}
}

// aimsAtCall reports whether the run's aim is such a call.
func (s *sim) aimsAtCall(c *call) bool {
	return s.laneAim.left > 0 && op(s.laneAim.fault/fault(modes)) == c.op && !s.isHealed()
}

// inState reports whether a lane for which a call is made is where the run aims at.
func (s *sim) inState(c *call) bool {
	return slices.ContainsFunc(c.lanes, func(r *laneRun) bool { return r.lane.Status().State == s.laneAim.state })
}

// aimedCall reports whether the run's aim is a call that is made now: it is spoilt.
func (s *sim) aimedCall(c *call) bool {
	if len(c.lanes) == 0 || !s.aimsAtCall(c) || !s.inState(c) {
		return false
	}
	s.laneAim.left--
	return true
}

// holdForLane keeps a call for the state at which the run aims, mostly in vain. If it returns
// an error, nothing was done.
func (s *sim) holdForLane(ctx context.Context, st *store, c *call) error {
	if s.random.IntN(3) == 0 || s.inState(c) {
		return nil
	}
	late := time.Duration(s.random.IntN(60_000)) * time.Microsecond
	return st.await(ctx, &task{
		node: st.node, key: st.key(c), ctx: ctx, due: s.after(late), aimed: func() bool { return s.inState(c) },
	})
}

// aimedChange returns what a run does to a subscription that has an aim, or what.
func (s *sim) aimedChange(what fault) fault {
	switch {
	case s.laneAim.left == 0 || s.random.IntN(2) == 0:
	case s.laneAim.state == messages.LaneHandling:
		return faultReplay
	case s.aimsAtCall(&call{op: opDelete}):
		return faultRemove
	case s.aimsAtCall(&call{op: opLook}):
		return faultPause
	}
	return what
}
