package sim

import (
	"context"
	"errors"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// keep starts the subscription where the application is served, and changes where it stands
// now and then, until the clients are done.
func (c *consumer) keep() {
	c.s.gate(nil, c.keeper())
	for {
		c.pause(4)
		if c.s.quit || c.s.drained {
			break
		}
		c.turn()
	}
	c.done = true
}

func (c *consumer) keeper() string { return "keeper of " + c.name() }

func (c *consumer) pause(most int) {
	c.s.wait(&task{key: c.keeper(), due: c.s.after(time.Duration(c.s.random.IntN(1000*most)) * time.Microsecond)})
}

func (c *consumer) turn() {
	if c.run != nil && c.s.isDead(c.run.node) {
		c.run = nil
	}
	switch n := c.s.serving(); {
	case c.run == nil && n != nil:
		c.start(n)
	case c.run == nil:
	case c.rests() && c.s.random.IntN(3) == 0:
		c.change(c.run, faultResume)
	case c.s.strikes(rateChange):
		c.change(c.run, c.s.aimedChange(faultPause+fault(c.s.random.IntN(int(faultGiveUp-faultPause)))))
	}
}

// rests reports whether a lane goes on only when it is told to.
func (c *consumer) rests() bool {
	for _, r := range c.run.lanes {
		if state := r.lane.Status().State; state == messages.LaneHalted || state == messages.LaneFailed {
			return true
		}
	}
	return false
}

// context is that of a change: it ends when the seed says so, or with the process.
func (c *consumer) context(n *node, lanes []*laneRun) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(n.stopped)
	if c.s.isHealed() || c.s.random.IntN(4) > 0 {
		return ctx, func() { cancel(nil) }
	}
	limit := clock{&c.s.scheduler, n}.AfterFunc(time.Duration(c.s.random.IntN(20_000))*time.Microsecond, func() {
		for _, r := range lanes {
			c.s.hitLane(faultGiveUp, r)
		}
		cancel(context.DeadlineExceeded)
	})
	return ctx, func() {
		limit.Stop()
		cancel(nil)
	}
}

// start makes the subscription if there is none, and runs it.
func (c *consumer) start(n *node) {
	ctx, end := c.context(n, nil)
	defer end()
	made := c.made
	if c.s.random.IntN(4) == 0 {
		made.Next = c.ends()
	}
	err := c.put(ctx, n, made)
	c.s.gate(nil, c.keeper())
	if err != nil {
		c.s.notef("%s is not started: %v", c.name(), err)
	}
	if err == nil && !n.stopping && !c.s.isDead(n) {
		c.spawn(n)
	}
}

// ends returns the positions behind the logs.
func (c *consumer) ends() map[messages.PartitionID]uint64 {
	next := make(map[messages.PartitionID]uint64)
	for _, m := range c.models {
		next[m.partition] = 1
		for offset := range m.log(1) {
			next[m.partition] = offset + 1
		}
	}
	return next
}

// change does one of the things that change where the subscription stands.
func (c *consumer) change(run *running, what fault) {
	n, lanes := run.node, run.lanes
	one := lanes[c.s.random.IntN(len(lanes))]
	if what == faultRewind {
		lanes = []*laneRun{one}
	}
	ctx, end := c.context(n, lanes)
	defer end()
	if what == faultReplay || what == faultDrop {
		c.parked(ctx, run, what)
		return
	}
	for _, r := range lanes {
		c.s.hitLane(what, r)
	}
	if what == faultRemove && c.s.random.IntN(2) == 0 {
		_ = c.stop(n.stopped, run, "end")
		return
	}
	err := c.holding(ctx, n, lanes, func() error {
		switch what {
		case faultPause:
			now, err := c.look(ctx, n, lanes)
			if err != nil || now.Stopped != "" {
				return err
			}
			return c.move(ctx, n, lanes, storage.SubscriptionMove{Stopped: new(partition.Paused)})
		case faultResume:
			return c.move(ctx, n, lanes, storage.SubscriptionMove{Stopped: new(string)})
		case faultRewind:
			p := one.model.partition
			next := 1 + uint64(c.s.random.IntN(int(c.ends()[p])))
			return c.move(ctx, n, lanes, storage.SubscriptionMove{Next: map[messages.PartitionID]uint64{p: next}})
		case faultSkip:
			return c.move(ctx, n, lanes, storage.SubscriptionMove{Next: c.ends()})
		default:
			return c.delete(ctx, run)
		}
	})
	c.concluded(n, what, err)
}

func (c *consumer) concluded(n *node, what fault, err error) {
	if c.s.isDead(n) {
		err = errCrashed
	}
	c.s.notef("%s: %v: %v", c.name(), what, err)
	if errors.Is(err, storage.ErrSubscription) {
		c.s.failf("%s: %v: %v", c.name(), what, err)
	}
}

// holding holds lanes while it changes where they stand, as package partition does.
func (c *consumer) holding(ctx context.Context, n *node, lanes []*laneRun, work func() error) error {
	err := errors.Join(n.together("hold "+c.name(), lanes, func(r *laneRun) error { return r.lane.Hold(ctx) })...)
	if err == nil && !c.s.isDead(n) {
		err = work()
		c.s.gate(nil, c.keeper())
	}
	if !c.s.isDead(n) {
		for _, r := range lanes {
			r.lane.Release()
		}
	}
	return err
}

func (c *consumer) delete(ctx context.Context, run *running) error {
	err := c.remove(ctx, run.node, run.lanes)
	if err != nil && !errors.Is(err, storage.ErrNoSubscription) {
		return err
	}
	c.s.gate(nil, c.keeper())
	return c.stop(run.node.stopped, run, "delete")
}

// parked replays or drops an event that is parked.
func (c *consumer) parked(ctx context.Context, run *running, what fault) {
	n := run.node
	now, err := storagetest.WholeSubscription(context.Background(), c.s.disk, c.name())
	if err != nil || len(now.Parked) == 0 {
		return
	}
	e := now.Parked[c.s.random.IntN(len(now.Parked))]
	var r *laneRun
	for _, r = range run.lanes {
		if r.model.partition == e.Partition {
			break
		}
	}
	c.s.hitLane(what, r)
	if what == faultDrop {
		err = c.move(ctx, n, nil, storage.SubscriptionMove{Unpark: []storage.ParkedEvent{e}})
		c.s.gate(nil, c.keeper())
	} else {
		lanes := []*laneRun{r}
		err = c.holding(ctx, n, lanes, func() error { return c.replay(ctx, r, e) })
	}
	c.concluded(n, what, err)
}

// replay hands a parked event over once more.
func (c *consumer) replay(ctx context.Context, r *laneRun, e storage.ParkedEvent) error {
	var event messages.LogEvent
	for offset, found := range r.model.log(e.Offset) {
		event = messages.LogEvent{Offset: offset, Event: found}
		break
	}
	r.trying, r.tried = e.Offset, errors.New("it was not handed over")
	err := r.lane.Try(ctx, event)
	c.s.gate(nil, c.keeper())
	lanes := []*laneRun{r}
	switch {
	case c.s.isDead(r.node), ctx.Err() != nil, errors.Is(err, messages.ErrStopped), errors.Is(err, messages.ErrInterrupted):
		return err
	case err != nil:
		e.Reason = err.Error()
		return errors.Join(err, c.move(ctx, r.node, lanes, storage.SubscriptionMove{Park: []storage.ParkedEvent{e}}))
	case r.tried != nil:
		c.s.failf("%v: the replay of offset %d was answered well: %v", r.key, e.Offset, r.tried)
	}
	return c.move(ctx, r.node, lanes, storage.SubscriptionMove{Unpark: []storage.ParkedEvent{e}})
}

// finish runs the subscription, without faults, until nothing is left to be delivered.
func (c *consumer) finish(n *node) {
	c.poison, c.limit, c.lane.StopOnPoison = 0, time.Minute, false
	c.start(n)
	if c.run == nil {
		c.s.failf("%s does not start any more", c.name())
		return
	}
	c.change(c.run, faultResume)
	// If it never comes to the end of its logs, nothing moves any more, or the run does not end.
	c.s.wait(&task{key: c.keeper(), ready: func() bool { return c.s.quit || !c.isBehind() }})
}

func (c *consumer) isBehind() bool {
	for _, m := range c.models {
		if m.behind() {
			return true
		}
	}
	return false
}

// kindNow returns the kind that a workspace has, or would have.
func (s *sim) kindNow(ws messages.WSID) messages.WSKind {
	kind := s.kindOf(ws)
	s.ledger.wlog(ws, func(e messages.Event) bool {
		kind = e.WorkspaceKind
		return true
	})
	return kind
}
