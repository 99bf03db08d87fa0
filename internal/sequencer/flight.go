package sequencer

import "github.com/partita-go/partita/messages"

// maxDivergences is how many flushes in a row may be refused because the log
// says something else, before the partition gives up.
const maxDivergences = 3

// flight is the flush under way: what it writes stays as it is, retried until
// it has succeeded, before anything newer.
type flight struct {
	// pending is nil if no flush is under way.
	pending *pending
	request *messages.WriteProjections
	// since is when it began.
	since messages.Timestamp
	// failures counts the tries that failed, in a row; err is why the last one did.
	failures int
	err      error
	// retryDue says that the next try waits for its timer.
	retryDue bool
}

// unflushedKeys is what the Busy limit is about.
func (c *Core) unflushedKeys() int {
	n := c.unflushed.keys
	if c.flight.pending != nil {
		n += c.flight.pending.keys
	}
	for _, r := range c.retired {
		n += r.pending.keys
	}
	return n
}

// unflushedEvents counts the events from the stored checkpoint on.
func (c *Core) unflushedEvents() int {
	return int(c.durable + 1 - c.checkpoint)
}

// waitingEvents counts the events that no flush under way covers.
func (c *Core) waitingEvents() int {
	from := c.checkpoint
	if c.flight.pending != nil {
		from = c.flight.request.Checkpoint
	}
	return int(c.durable + 1 - from)
}

// maybeFlush starts a flush if one is due and none is under way, else arms the
// timer if anything waits: an idle partition runs none.
func (c *Core) maybeFlush() {
	if c.flight.pending != nil || c.waitingEvents() == 0 {
		return
	}
	switch c.state {
	case messages.StateNormal, messages.StateAlarming:
		left := c.remaining(c.unflushedSince, c.settings.FlushInterval)
		if c.thresholdReached() || left <= 0 {
			c.startFlush()
			return
		}
		c.arm(messages.TimerFlush, left)
	case messages.StateInitializing:
		if c.replay.checkpointDue || c.unflushed.keys >= c.settings.BusyLimit {
			c.startFlush()
		}
	case messages.StateTerminating:
		// A stop that gave up knows only a part of what the events say.
		if !c.stop.giveUp {
			c.startFlush()
		}
	case messages.StateTerminated, messages.StateFailed:
	}
}

// thresholdReached also looks at the events, so that the limit on them is not
// reached by many events of few workspaces within one interval.
func (c *Core) thresholdReached() bool {
	return c.flushDue || c.unflushed.keys >= c.settings.FlushThreshold || c.waitingEvents() >= max(1, c.settings.BusyEvents/2)
}

// startFlush hands everything up to the last durable event to the flusher.
func (c *Core) startFlush() {
	c.replay.checkpointDue, c.flushDue = false, false
	c.flight = flight{
		pending: c.unflushed,
		since:   c.now,
		request: &messages.WriteProjections{
			Generation: c.generation,
			Epoch:      c.epoch,
			Expected:   c.checkpoint,
			Checkpoint: c.durable + 1,
			Numbers:    c.unflushed.numbers(),
		},
	}
	c.unflushed = newPending(c.unflushed.serial + 1)
	c.out.Flusher = c.flight.request
}

// written handles the flusher's answer.
func (c *Core) written(m *messages.Written) {
	if m.Generation != c.generation || c.flight.pending == nil || m.Checkpoint != c.flight.request.Checkpoint {
		return
	}
	switch m.Outcome {
	case messages.Done:
		c.flushed()
	case messages.Retry:
		c.flight.failures++
		c.flight.retryDue, c.flight.err = true, m.Err
		if c.state == messages.StateNormal || c.state == messages.StateAlarming {
			c.serve()
		} else {
			c.setStatus(c.state, m.Err)
		}
		c.arm(messages.TimerFlushRetry, c.retryDelay(c.flight.failures))
	case messages.Diverged:
		c.diverged(m)
	case messages.Broken:
		c.flushBroken(m)
	}
}

// flushed takes over the new checkpoint.
func (c *Core) flushed() {
	if len(c.loads) > 0 {
		c.retired = append(c.retired, retirement{pending: c.flight.pending, lastLoad: c.lastLoad})
	}
	c.checkpoint = c.flight.request.Checkpoint
	failed := c.flight.failures > 0
	c.flushTook = -c.remaining(c.flight.since, 0)
	c.flight = flight{}
	c.divergences = 0
	c.clogged = c.clogged && c.overLimit()
	if failed && c.state == messages.StateAlarming {
		c.serve()
	}
	if c.state == messages.StateInitializing {
		// What waits is handed over first: it may be why no credit was given.
		c.maybeFlush()
		c.creditReplay()
	}
}

// diverged replays the tail, since the log is the truth; a second and third time
// with hope, then no more.
func (c *Core) diverged(m *messages.Written) {
	c.divergences++
	if c.divergences >= maxDivergences {
		c.flushBroken(m)
		return
	}
	c.lastErr = m.Err
	c.becomeActualizing()
}

func (c *Core) flushBroken(m *messages.Written) {
	if c.state == messages.StateTerminating {
		c.giveUpStop(m.Err)
		return
	}
	c.becomeFailed(m.PLogOffset, m.Err)
}

// retryFlush tries the same batch again.
func (c *Core) retryFlush() {
	if c.flight.retryDue {
		c.flight.retryDue = false
		c.out.Flusher = c.flight.request
	}
}
