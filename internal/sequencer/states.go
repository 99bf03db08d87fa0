package sequencer

import (
	"errors"

	"github.com/partita-go/partita/messages"
)

// stepActualizing: the tail of the log is replayed, or an epoch is awaited.
func (c *Core) stepActualizing(from Requester, m messages.PartitionMessage) { //nolint:gocyclo // a table: one call for each message
	switch m := m.(type) {
	case *messages.Start:
		c.busy(from, messages.BusyActualizing, c.settings.RetryDelay)
	case *messages.Append:
		c.append(from, m)
	case *messages.Next:
		c.refuseToken(from, m.Token)
	case *messages.Raise:
		c.refuseToken(from, m.Token)
	case *messages.Cancel:
		c.refuseToken(from, m.Token)
	case *messages.Actualize:
		c.actualizeAgain(from, m.Token)
	case *messages.Flush:
		c.flushLate(from, m.Token)
	case *messages.Taken:
		c.taken(m)
	case *messages.Replayed:
		c.replayed(m)
	case *messages.ReplayFailed:
		c.replayFailed(m)
	case *messages.Written:
		c.written(m)
	case *messages.TimerFired:
		c.timerFired(m.Timer)
	case *messages.Stop:
		c.askStop(from)
	case *messages.Reconfigure:
		c.reconfigure(from, m.Settings)
	case *messages.EventsLoaded:
		c.eventsLoaded(m)
	case *messages.Loaded, *messages.Found, *messages.EventsWritten, *messages.OwnerStopped:
		// Asked for before the actualization began.
	}
}

// stepActualizingToStop: the same, but nothing new begins, and at its end the partition stops.
func (c *Core) stepActualizingToStop(from Requester, m messages.PartitionMessage) {
	switch m.(type) { //nolint:gochecksumtype // all others take the default
	case *messages.Start, *messages.Append:
		c.refuse(from, errStopping)
	default:
		c.stepActualizing(from, m)
	}
}

// stepIdle: no transaction is open.
func (c *Core) stepIdle(from Requester, m messages.PartitionMessage) { //nolint:gocyclo // a table: one call for each message
	switch m := m.(type) {
	case *messages.Start:
		c.start(from, m)
	case *messages.Append:
		c.append(from, m)
	case *messages.Next:
		c.refuseToken(from, m.Token)
	case *messages.Raise:
		c.refuseToken(from, m.Token)
	case *messages.Cancel:
		c.refuseToken(from, m.Token)
	case *messages.Actualize:
		c.actualizeAgain(from, m.Token)
	case *messages.Flush:
		c.flushLate(from, m.Token)
	case *messages.Loaded:
		c.loaded(m)
	case *messages.Written:
		c.written(m)
	case *messages.EventsWritten:
		c.eventsWritten(m)
	case *messages.EventsLoaded:
		c.eventsLoaded(m)
	case *messages.Found:
		c.found(m)
	case *messages.TimerFired:
		c.timerFired(m.Timer)
	case *messages.Stop:
		c.askStop(from)
	case *messages.Reconfigure:
		c.reconfigure(from, m.Settings)
	case *messages.Taken, *messages.Replayed, *messages.ReplayFailed, *messages.OwnerStopped:
		// Of an actualization or a transaction that has ended.
	}
}

// stepOpen: a transaction is open. Its token makes its messages legal.
func (c *Core) stepOpen(from Requester, m messages.PartitionMessage) { //nolint:gocyclo // a table: one call for each message
	switch m := m.(type) {
	case *messages.Start:
		// The request lane is held, so this comes from a load that returned early or
		// from a shell that does not hold it.
		c.start(from, m)
	case *messages.Append:
		c.append(from, m)
	case *messages.Next:
		c.next(from, m)
	case *messages.Raise:
		c.raise(from, m)
	case *messages.Flush:
		c.flush(from, m)
	case *messages.Cancel:
		c.cancel(from, m)
	case *messages.Actualize:
		c.actualize(from, m)
	case *messages.OwnerStopped:
		c.ownerStopped(m)
	case *messages.Loaded:
		c.loaded(m)
	case *messages.Written:
		c.written(m)
	case *messages.EventsLoaded:
		c.eventsLoaded(m)
	case *messages.Found:
		c.found(m)
	case *messages.TimerFired:
		c.timerFired(m.Timer)
	case *messages.Stop:
		c.askStop(from)
	case *messages.Reconfigure:
		c.reconfigure(from, m.Settings)
	case *messages.EventsWritten, *messages.Taken, *messages.Replayed, *messages.ReplayFailed:
		// No batch is in flight; of an actualization that has ended.
	}
}

// stepStopping: the open transaction may end, what is durable is flushed, nothing
// new begins.
func (c *Core) stepStopping(from Requester, m messages.PartitionMessage) { //nolint:gocyclo // a table: one call for each message
	switch m := m.(type) {
	case *messages.Start, *messages.Append:
		c.refuse(from, errStopping)
	case *messages.Next:
		c.next(from, m)
	case *messages.Raise:
		c.raise(from, m)
	case *messages.Flush:
		c.flush(from, m)
	case *messages.Cancel:
		c.cancel(from, m)
	case *messages.Actualize:
		c.actualize(from, m)
	case *messages.OwnerStopped:
		c.ownerStopped(m)
	case *messages.Written:
		c.written(m)
	case *messages.EventsWritten:
		c.eventsWritten(m)
	case *messages.EventsLoaded:
		c.eventsLoaded(m)
	case *messages.Found:
		c.found(m)
	case *messages.TimerFired:
		c.timerFired(m.Timer)
	case *messages.Stop:
		c.askStop(from)
	case *messages.Reconfigure:
		c.reconfigure(from, m.Settings)
	case *messages.Loaded, *messages.Taken, *messages.Replayed, *messages.ReplayFailed:
		// Whoever waited for it was answered when the stop began.
	}
}

// stepStopped: the partition has ended; the actor is about to stop.
func (c *Core) stepStopped(from Requester, m messages.PartitionMessage) {
	switch m.(type) {
	case *messages.Start, *messages.Append, *messages.Next, *messages.Raise, *messages.Flush, *messages.Cancel,
		*messages.Actualize, *messages.Reconfigure:
		c.refuse(from, messages.ErrStopped)
	case *messages.Stop:
		c.reply(from, &messages.Stopped{Clean: c.stop.clean})
	case *messages.Loaded, *messages.Written, *messages.Found, *messages.EventsWritten, *messages.EventsLoaded,
		*messages.Taken, *messages.Replayed, *messages.ReplayFailed, *messages.OwnerStopped, *messages.TimerFired:
		// Nobody waits for it any more.
	}
}

// stepFailed: the partition cannot go on before somebody repairs something.
func (c *Core) stepFailed(from Requester, m messages.PartitionMessage) {
	switch m := m.(type) {
	case *messages.Start, *messages.Append, *messages.Next, *messages.Raise, *messages.Flush, *messages.Cancel,
		*messages.Actualize:
		c.refuse(from, c.refusal)
	case *messages.Stop:
		c.askStop(from)
	case *messages.Reconfigure:
		c.reconfigure(from, m.Settings)
	case *messages.Loaded, *messages.Written, *messages.Found, *messages.EventsWritten, *messages.EventsLoaded,
		*messages.Taken, *messages.Replayed, *messages.ReplayFailed, *messages.OwnerStopped, *messages.TimerFired:
		// Asked for before the fault.
	}
}

// becomeIdle is entered when the tail is replayed and when a transaction ends.
func (c *Core) becomeIdle() {
	c.step = (*Core).stepIdle
}

// becomeFailed answers everybody and takes nothing any more.
func (c *Core) becomeFailed(offset messages.PLogOffset, cause error) {
	c.fault = &messages.PartitionError{Partition: c.partition, PLogOffset: offset, Cause: cause}
	c.refusal = c.fault
	if isFenced(cause) {
		// ErrFenced says of a request that its event is not in the log. As the reason
		// for failing it says nothing about what was written before.
		c.refusal = &messages.PartitionError{Partition: c.partition, PLogOffset: offset, Cause: errors.New(cause.Error())}
	}
	c.endTransaction()
	c.abandonAppends(c.refusal, c.refusal)
	c.refuseWaiting(c.refusal)
	c.refuseLate(c.refusal)
	if c.state == messages.StateInitializing {
		// Others may wait for their turn to replay.
		c.out.Actualizer = append(c.out.Actualizer, &messages.EndReplay{Generation: c.generation})
	}
	c.generation++
	c.step = (*Core).stepFailed
	c.setStatus(messages.StateFailed, c.fault)
	if c.isStopping() {
		c.giveUpStop(c.fault)
	}
}

// refuseWaiting refuses everybody who waits for a load or for its turn.
func (c *Core) refuseWaiting(err error) {
	c.refuseAll(c.takeWaiting(), err)
}

// takeWaiting empties the queue, and the queues of the loads.
func (c *Core) takeWaiting() []waiting {
	all := c.queue.takeAll()
	for _, id := range sortedIDs(c.loads) {
		all = append(all, c.loads[id].queue...)
	}
	for i := range all {
		c.release(&all[i])
	}
	clear(c.loads)
	c.awaiting = 0
	c.retired = nil
	c.redo = redo{}
	return all
}

func (c *Core) timerFired(t messages.Timer) {
	if t >= messages.Timers {
		return
	}
	c.armed[t] = false
	switch t {
	case messages.TimerFlush, messages.TimerPeriod:
		// Every step ends with maybeFlush and watchPeriods.
	case messages.TimerFlushRetry:
		c.retryFlush()
	case messages.TimerTransaction:
		c.transactionTimerFired()
	case messages.TimerActualizeRetry:
		c.retryActualize()
	case messages.TimerCatchUp:
		c.catchUpTimerFired()
	case messages.TimerStop:
		c.stopTimerFired()
	case messages.TimerClock:
		c.watchClock()
	case messages.TimerAlarm, messages.Timers:
	}
}
