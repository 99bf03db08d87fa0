package sequencer

import (
	"fmt"

	"github.com/partita-go/partita/messages"
)

// replay is the state of an actualization.
type replay struct {
	// taken says that the new epoch is durable.
	taken bool
	// last is the offset up to which the tail is to be replayed.
	last messages.PLogOffset
	// epoch and time are those of the event replayed last.
	epoch messages.Epoch
	time  messages.Timestamp
	// events counts what was replayed, tail what there is to replay.
	events, tail uint64
	// credited says that the actualizer reads the next piece.
	credited bool
	// yielded says that the actualizer was told to let others go first.
	yielded bool
	// checkpointDue says that it is time for a checkpoint.
	checkpointDue bool
	// failures counts the tries that failed, in a row. elsewhere says that another node owned the log at the last one.
	failures  int
	elsewhere bool
}

// becomeActualizing drops everything that is not in the log and asks for a new
// epoch and the tail. Whatever was asked before is answered in vain from now on.
func (c *Core) becomeActualizing() {
	c.endTransaction()
	c.doubtBatch()
	c.keepAppends()
	for i := range c.late {
		c.late[i].asked = false
	}
	c.clogged = false
	c.cache.Purge()
	c.unflushed = newPending(c.unflushed.serial + 1)
	c.flight = flight{}
	c.step = (*Core).stepActualizing
	if c.isStopping() {
		c.step = (*Core).stepActualizingToStop
	}
	c.setStatus(messages.StateInitializing, c.lastErr)
	c.askReplay(0)
}

// keepAppends answers the Starts that wait; the Appends wait on, for numbers that
// are looked up anew.
func (c *Core) keepAppends() {
	for _, w := range c.takeWaiting() {
		if w.append == nil {
			c.busy(w.from, messages.BusyActualizing, c.settings.RetryDelay)
			continue
		}
		c.queue.push(w)
	}
}

// askReplay begins a try.
func (c *Core) askReplay(failures int) {
	c.generation++
	c.actualizations++
	c.replay = replay{failures: failures}
	c.out.Actualizer = append(c.out.Actualizer, &messages.Replay{Generation: c.generation})
}

// actualizeAgain answers an Actualize whose transaction has ended: if it was
// fenced, what it asks for is done or under way.
func (c *Core) actualizeAgain(to Requester, t messages.Token) {
	err := c.tokenError(t)
	if isFenced(err) {
		c.reply(to, &messages.Actualizing{})
		return
	}
	c.refuse(to, err)
}

// taken begins the replay under the new epoch.
func (c *Core) taken(m *messages.Taken) {
	r := m.Register
	if m.Generation != c.generation || c.replay.taken {
		return
	}
	if r.Checkpoint == 0 || r.Checkpoint > r.Last+1 {
		c.becomeFailed(0, fmt.Errorf("%w: checkpoint %d, last event %d", messages.ErrBrokenLog, r.Checkpoint, r.Last))
		return
	}
	c.epoch = r.Epoch
	c.checkpoint = r.Checkpoint
	c.durable = r.Checkpoint - 1
	c.lastTime = max(c.lastTime, r.LastRegisteredAt)
	c.replay.taken = true
	c.replay.last, c.replay.tail = r.Last, uint64(r.Last+1-r.Checkpoint)
	c.doubtRegister(&r)
	c.creditReplay()
	if c.state == messages.StateInitializing {
		c.arm(messages.TimerCatchUp, c.settings.CatchUpCheckpoint)
	}
}

// creditReplay asks for the next piece, unless too much is unflushed already, and
// ends the replay when there is none.
func (c *Core) creditReplay() {
	switch {
	case c.durable == c.replay.last:
		c.replayDone()
	case c.replay.credited:
	case c.unflushed.keys >= c.settings.BusyLimit:
		c.yieldReplay()
	default:
		c.replay.credited, c.replay.yielded = true, false
		c.out.Actualizer = append(c.out.Actualizer, &messages.Credit{Generation: c.generation, From: c.durable + 1})
	}
}

// yieldReplay lets other partitions replay while this one waits for its flush.
func (c *Core) yieldReplay() {
	if !c.replay.yielded {
		c.replay.yielded = true
		c.out.Actualizer = append(c.out.Actualizer, &messages.EndReplay{Generation: c.generation})
	}
}

// replayed merges a piece of the tail.
func (c *Core) replayed(m *messages.Replayed) {
	if m.Generation != c.generation || !c.replay.credited {
		return
	}
	c.replay.credited = false
	if len(m.Events) == 0 {
		c.becomeFailed(c.durable+1, fmt.Errorf("%w: no event there, want events up to %d", messages.ErrBrokenLog, c.replay.last))
		return
	}
	for i := range m.Events {
		if c.durable == c.replay.last {
			break
		}
		if err := c.replayEvent(&m.Events[i]); err != nil {
			c.becomeFailed(c.durable+1, err)
			return
		}
	}
	// A long replay is told piece by piece.
	c.out.Status = c.out.Status || c.durable < c.replay.last
	c.maybeFlush()
	c.creditReplay()
}

// replayEvent makes one event's numbers unflushed.
func (c *Core) replayEvent(e *messages.Numbering) error {
	kind, err := c.replayable(e)
	if err != nil {
		return err
	}
	if c.waitingEvents() == 0 {
		c.unflushedSince = c.now
	}
	d := c.unflushed.of(e.Workspace, kind)
	if d.kind != kind {
		return fmt.Errorf("%w: workspace %d: got kind %d, want %d", messages.ErrBrokenLog, e.Workspace, kind.id, d.kind.id)
	}
	if e.WLogOffset == 1 {
		c.unflushed.markFirst(d)
	}
	c.unflushed.raise(d, wlogOffset, 0, messages.Number(e.WLogOffset))
	for _, n := range e.Numbers {
		i := kind.index(n.Seq)
		if i <= wlogOffset || n.Number > kind.sequences[i].Max() || !kind.hasPeriod(i, n.Period) {
			return fmt.Errorf("%w: workspace %d, kind %d: sequence %d, period %v, number %d",
				messages.ErrBrokenLog, e.Workspace, kind.id, n.Seq, n.Period, n.Number)
		}
		if n.Number >= kind.sequences[i].Initial {
			c.unflushed.raise(d, i, n.Period, n.Number)
		}
	}
	if e.Zone != "" {
		d.changes = append(d.changes, messages.ZoneChange(e.Zone, e.RegisteredAt))
	}
	c.durable = e.PLogOffset
	c.replay.epoch, c.replay.time = e.Epoch, e.RegisteredAt
	c.replay.events++
	return c.doubtEvent(e)
}

// replayable returns the kind of an event that continues the log.
func (c *Core) replayable(e *messages.Numbering) (*kindDef, error) {
	kind := c.kinds[e.WorkspaceKind]
	switch {
	case e.PLogOffset != c.durable+1:
		return nil, fmt.Errorf("%w: got offset %d, want %d", messages.ErrBrokenLog, e.PLogOffset, c.durable+1)
	case e.Epoch < c.replay.epoch || e.Epoch >= c.epoch:
		return nil, fmt.Errorf("%w: got epoch %d, want at least %d and below %d", messages.ErrBrokenLog, e.Epoch, c.replay.epoch, c.epoch)
	case e.RegisteredAt < c.replay.time:
		return nil, fmt.Errorf("%w: got time %v, want at least %v", messages.ErrBrokenLog, e.RegisteredAt, c.replay.time)
	case kind == nil:
		return nil, fmt.Errorf("%w: workspace %d: unknown kind %d", messages.ErrBrokenLog, e.Workspace, e.WorkspaceKind)
	case messages.PartitionOf(e.Workspace, c.partitions) != c.partition:
		return nil, fmt.Errorf("%w: workspace %d is not of partition %d", messages.ErrBrokenLog, e.Workspace, c.partition)
	case e.WLogOffset == 0:
		return nil, fmt.Errorf("%w: workspace %d: WLog offset 0", messages.ErrBrokenLog, e.Workspace)
	}
	return kind, nil
}

// replayDone opens the partition, or goes on with its stop.
func (c *Core) replayDone() {
	c.out.Actualizer = append(c.out.Actualizer, &messages.EndReplay{Generation: c.generation})
	if c.isStopping() {
		c.becomeStopping(nil)
	} else {
		c.becomeIdle()
		c.serve()
	}
	c.resolveDoubt()
	c.askLate()
}

// replayFailed tries again, under yet another epoch, or gives up.
func (c *Core) replayFailed(m *messages.ReplayFailed) {
	if m.Generation != c.generation {
		return
	}
	if m.Outcome == messages.Broken {
		c.becomeFailed(m.PLogOffset, m.Err)
		return
	}
	c.replay.failures++
	if c.replay.elsewhere = m.Elsewhere; m.Elsewhere && c.isStopping() {
		c.giveUpStop(m.Err)
		return
	}
	c.setStatus(messages.StateInitializing, m.Err)
	c.arm(messages.TimerActualizeRetry, c.retryDelay(c.replay.failures))
}

func (c *Core) retryActualize() {
	if c.state == messages.StateInitializing && c.replay.failures > 0 {
		c.becomeActualizingAgain()
	}
}

// becomeActualizingAgain starts over after a failure: what was replayed and
// flushed so far is stored, the rest is read again.
func (c *Core) becomeActualizingAgain() {
	failures := c.replay.failures
	c.unflushed = newPending(c.unflushed.serial + 1)
	c.flight = flight{}
	c.askReplay(failures)
}

// catchUpTimerFired makes a checkpoint due while the tail is long.
func (c *Core) catchUpTimerFired() {
	if c.state != messages.StateInitializing || !c.replay.taken {
		return
	}
	c.replay.checkpointDue = true
	c.arm(messages.TimerCatchUp, c.settings.CatchUpCheckpoint)
}
