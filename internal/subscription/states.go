package subscription

import "github.com/partita-go/partita/messages"

// stepLoading: the deliverer asks the store.
func (l *Lane) stepLoading(from Requester, m messages.LaneMessage) {
	if m, ok := m.(*messages.PositionLoaded); ok {
		l.positionLoaded(m)
		return
	}
	l.stepInterruptible(from, m)
}

// stepWaiting: the deliverer waits for the log to grow.
func (l *Lane) stepWaiting(from Requester, m messages.LaneMessage) {
	if m, ok := m.(*messages.LogGrown); ok {
		l.logGrown(m)
		return
	}
	l.stepInterruptible(from, m)
}

// stepReading: the deliverer reads.
func (l *Lane) stepReading(from Requester, m messages.LaneMessage) {
	if m, ok := m.(*messages.EventsRead); ok {
		l.eventsRead(m)
		return
	}
	l.stepInterruptible(from, m)
}

// stepHandling: the handler has a batch.
func (l *Lane) stepHandling(from Requester, m messages.LaneMessage) {
	if m, ok := m.(*messages.BatchHandled); ok {
		l.batchHandled(m)
		return
	}
	l.stepUninterruptible(from, m)
}

// stepStoring: what was handled becomes durable.
func (l *Lane) stepStoring(from Requester, m messages.LaneMessage) {
	if m, ok := m.(*messages.PositionStored); ok {
		l.positionStored(m)
		return
	}
	l.stepUninterruptible(from, m)
}

// stepRetrying: the timer runs.
func (l *Lane) stepRetrying(from Requester, m messages.LaneMessage) {
	switch m := m.(type) {
	case *messages.HoldLane:
		l.holders = append(l.holders, from)
		l.finishRetrying()
	case *messages.StopLane:
		l.stoppers = append(l.stoppers, from)
		l.finishRetrying()
	case *messages.ReloadLane:
		if l.reload = true; l.pending == nil {
			l.settleBehindPassed()
		}
	case *messages.TryEvent:
		l.refuse(from, ErrNotHeld)
	case *messages.RetryFired:
		if m.Generation == l.generation {
			l.afterDelay(l)
		}
	case *messages.ReleaseLane, *messages.PositionLoaded, *messages.LogGrown, *messages.EventsRead, *messages.BatchHandled,
		*messages.PositionStored:
		// It is not held; of work that nobody wants any more.
	}
}

// stepHalted: the subscription is paused or has stopped.
func (l *Lane) stepHalted(from Requester, m messages.LaneMessage) { l.stepInterruptible(from, m) }

// stepFailed: something must be repaired.
func (l *Lane) stepFailed(from Requester, m messages.LaneMessage) { l.stepInterruptible(from, m) }

// stepInterruptible: nothing is under way, or nothing that leaves something behind.
func (l *Lane) stepInterruptible(from Requester, m messages.LaneMessage) {
	switch m.(type) {
	case *messages.HoldLane:
		l.hold(from)
	case *messages.StopLane:
		l.stop(from)
	case *messages.ReloadLane:
		l.reload = true
		l.settleBehindPassed()
	case *messages.TryEvent:
		l.refuse(from, ErrNotHeld)
	case *messages.ReleaseLane, *messages.PositionLoaded, *messages.LogGrown, *messages.EventsRead, *messages.BatchHandled,
		*messages.PositionStored, *messages.RetryFired:
		// It is not held; of work that nobody wants any more.
	}
}

// stepUninterruptible: what is under way is waited for.
func (l *Lane) stepUninterruptible(from Requester, m messages.LaneMessage) {
	switch m.(type) {
	case *messages.HoldLane:
		l.holders = append(l.holders, from)
	case *messages.ReleaseLane:
		l.releaseLater()
	case *messages.StopLane:
		l.stoppers = append(l.stoppers, from)
	case *messages.ReloadLane:
		l.reload = l.reload || !l.trying
	case *messages.TryEvent:
		l.refuse(from, ErrNotHeld)
	case *messages.PositionLoaded, *messages.LogGrown, *messages.EventsRead, *messages.BatchHandled, *messages.PositionStored,
		*messages.RetryFired:
		// Of work that nobody wants any more.
	}
}

// stepHeld: somebody changes where the lane stands.
func (l *Lane) stepHeld(from Requester, m messages.LaneMessage) {
	switch m := m.(type) {
	case *messages.HoldLane:
		l.reply(from, &messages.Held{})
	case *messages.ReleaseLane:
		l.becomeLoading()
	case *messages.StopLane:
		l.stop(from)
	case *messages.TryEvent:
		l.try(from, m)
	case *messages.ReloadLane, *messages.PositionLoaded, *messages.LogGrown, *messages.EventsRead, *messages.BatchHandled,
		*messages.PositionStored, *messages.RetryFired:
		// It reloads when it is released; of work that nobody wants any more.
	}
}

// stepEnded: the actor is about to stop.
func (l *Lane) stepEnded(from Requester, m messages.LaneMessage) {
	switch m.(type) {
	case *messages.HoldLane, *messages.TryEvent:
		l.refuse(from, messages.ErrStopped)
	case *messages.StopLane:
		l.reply(from, &messages.LaneStopped{})
	case *messages.ReleaseLane, *messages.ReloadLane, *messages.PositionLoaded, *messages.LogGrown, *messages.EventsRead,
		*messages.BatchHandled, *messages.PositionStored, *messages.RetryFired:
		// Nobody waits for it any more.
	}
}

// hold interrupts what leaves nothing behind.
func (l *Lane) hold(from Requester) {
	l.holders = append(l.holders, from)
	l.settleBehindPassed()
}

// releaseLater takes back a hold that was noted: whoever wanted to hold the lane has given up,
// or has changed where it stands while one event was tried.
func (l *Lane) releaseLater() {
	l.refuseHolders(ErrNotHeld)
	l.reload = true
}

// finishRetrying does not wait for the timer: what was handled is stored now, or it is
// delivered again.
func (l *Lane) finishRetrying() {
	if l.pending != nil {
		l.becomeStoring()
		return
	}
	l.settleBehindPassed()
}

// stop ends what leaves nothing behind.
func (l *Lane) stop(from Requester) {
	l.stoppers = append(l.stoppers, from)
	l.settleBehindPassed()
}
