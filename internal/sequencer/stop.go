package sequencer

import "github.com/partita-go/partita/messages"

// stopping is what a stop waits for.
type stopping struct {
	requesters []Requester
	// giveUp says that nothing more can be written: the stop ends now.
	giveUp bool
	clean  bool
}

// errStopping refuses what has not begun when the partition is stopped.
var errStopping error = &messages.BusyError{Reason: messages.BusyStopping}

// isStopping reports whether the partition was stopped, or will be as soon as its tail is
// replayed.
func (c *Core) isStopping() bool { return len(c.stop.requesters) > 0 }

// askStop refuses whoever waits, and lets what is under way end: the open transaction, the
// batch, an actualization. A partition that has failed has nothing to wait for.
func (c *Core) askStop(from Requester) {
	c.stop.requesters = append(c.stop.requesters, from)
	if len(c.stop.requesters) > 1 {
		return
	}
	c.refuseWaiting(errStopping)
	switch c.state {
	case messages.StateFailed:
		c.giveUpStop(c.lastErr)
		return
	case messages.StateInitializing:
		if c.replay.elsewhere {
			c.giveUpStop(c.lastErr)
			return
		}
		c.step = (*Core).stepActualizingToStop
		c.out.Status = true
	case messages.StateNormal, messages.StateAlarming, messages.StateTerminating, messages.StateTerminated:
		c.becomeStopping(c.lastErr)
	}
	c.arm(messages.TimerStop, c.settings.StopLimit)
}

// becomeStopping begins what only a partition can do that knows all of its log: flushing it.
func (c *Core) becomeStopping(err error) {
	c.step = (*Core).stepStopping
	c.setStatus(messages.StateTerminating, err)
}

// giveUpStop ends a stop whose last flush cannot succeed.
func (c *Core) giveUpStop(err error) {
	c.stop.giveUp = true
	c.becomeStopping(err)
}

// stopTimerFired leaves to the next start what could not be finished. State that is half
// replayed is left as it is: the log has it.
func (c *Core) stopTimerFired() {
	if c.isStopping() {
		c.giveUpStop(c.lastErr)
	}
}

// Flushed reports whether nothing is under way and everything in the log is flushed, as far
// as it is known.
func (c *Core) Flushed() bool {
	return !c.txn.open && !c.batch.underWay && len(c.searches) == 0 && c.flight.pending == nil && c.waitingEvents() == 0
}

// Trim lets go of what is kept to be used again, if nothing is under way or waits: a partition
// that rests takes hardly more than one that was never used.
func (c *Core) Trim() {
	if c.Flushed() && c.queue.len() == 0 && len(c.loads) == 0 {
		c.batch, c.queue = batch{}, queue{}
		c.loads = make(map[messages.WSID]*load)
	}
}

// maybeFinishStop ends the partition when nothing is in flight, or no more can
// be done.
func (c *Core) maybeFinishStop() {
	if c.state != messages.StateTerminating {
		return
	}
	flushed := c.Flushed()
	if !flushed && !c.stop.giveUp {
		return
	}
	c.stop.clean = flushed && !c.stop.giveUp
	c.endTransaction()
	c.abandonAppends(messages.ErrStopped, errStopping)
	c.refuseLate(messages.ErrStopped)
	c.step = (*Core).stepStopped
	c.setStatus(messages.StateTerminated, c.lastErr)
	for _, to := range c.stop.requesters {
		c.reply(to, &messages.Stopped{Clean: c.stop.clean})
	}
	c.out.Stopped = true
}

// Abort answers everybody who waits, since the actor ends or starts anew. The
// core must not be used afterwards.
func (c *Core) Abort(why error) *Effects {
	c.out.reset()
	c.refuseWaiting(why)
	c.abandonAppends(why, why)
	c.refuseLate(why)
	if c.state != messages.StateTerminated {
		for _, to := range c.stop.requesters {
			c.refuse(to, why)
		}
	}
	return &c.out
}
