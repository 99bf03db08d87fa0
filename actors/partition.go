package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/internal/sequencer"
	"github.com/partita-go/partita/messages"
)

// partition is the actor: a thin shell around the core.
type partition struct {
	handle      *Partition
	incarnation uint64
	core        *sequencer.Core
	leaf        *leaf
	cancel      context.CancelCauseFunc

	// leaves are those that there are, spawned counts those that there were.
	leaves  [leafKinds]*actor.PID
	spawned int

	timers [messages.Timers]Timer

	// watched is the owner of the open transaction if it is an actor.
	watched *actor.PID
	token   messages.Token

	// lastNow is what the clock said last.
	lastNow messages.Timestamp
	// distrusted says that the core was told to distrust the clock.
	distrusted bool
	// openSince is what the handle says of the open transaction.
	openSince messages.Timestamp
	// held says that the request lane is on hold.
	held bool
	// aborted says that everybody was answered.
	aborted bool

	// asked counts what the leaves have not answered, answered what they have.
	asked    [leafKinds]int
	answered [leafKinds]uint64
	alarm    alarm
	// refused says that the store has had no room for what was written last.
	refused bool
}

func (p *partition) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.PartitionMessage:
		p.handleMessage(ctx, m)
	case *actor.Started:
		p.started(ctx)
	case *actor.Terminated:
		p.childOrOwnerEnded(ctx, m.Who)
	case *actor.Restarting:
		p.abort(ctx, messages.ErrInterrupted)
	case *actor.Stopping:
		p.abort(ctx, p.handle.whyEnded())
		// The leaves may take long to end: nobody asks until then and is not answered.
		p.handle.mailbox.Close()
	case *actor.Stopped:
		p.ended()
	case actor.AutoReceiveMessage, actor.SystemMessage:
	default:
		p.handle.unhandled(m)
	}
}

func (p *partition) started(ctx actor.Context) {
	// The incarnation before may have left the lane on hold.
	p.handle.mailbox.Release()
	now := p.now(ctx)
	p.carryOut(ctx, p.core.Begin(now))
	if p.handle.stopBegun.Load() != nil {
		// Whoever asked the incarnation before may not have waited.
		ctx.Send(ctx.Self(), &messages.Stop{})
	}
}

// now reads the clock, and tells the core when it begins or ceases to be wrong.
func (p *partition) now(ctx actor.Context) messages.Timestamp {
	now, err := p.handle.guard.read(p.handle.settings.Load().ClockJump)
	if distrusted := err != nil; distrusted != p.distrusted {
		p.distrusted = distrusted
		p.carryOut(ctx, p.core.DistrustClock(err, now))
	}
	return now
}

// handleMessage steps the core and carries out what it wants.
func (p *partition) handleMessage(ctx actor.Context, m messages.PartitionMessage) {
	var from sequencer.Requester
	if sender := ctx.Sender(); sender != nil {
		from = p.handle.mailbox.Requester(sender, m)
	} else if g := p.countAnswer(m); g != 0 && g>>incarnationShift != p.incarnation {
		return
	}
	now := p.nowFor(ctx, m)
	fx := p.core.Step(from, m, now)
	p.carryOut(ctx, fx)
	if fx.Stopped {
		return // its end is that of its leaves
	}
	switch m := m.(type) { //nolint:gochecksumtype // after the others there is more to do, or there was nothing
	case *messages.Taken, *messages.Replayed, *messages.Written:
		p.rest(ctx)
	case *messages.TimerFired:
		if m.Timer == messages.TimerAlarm {
			p.look(ctx)
		}
	case *messages.EventsWritten:
		p.noteRoom(ctx, m.Err)
	}
}

// nowFor spares those messages the clock which do not depend on the time: for
// them it is still that of their Start. Reading it takes as long as the core's own
// work. What ends a transaction or a batch does depend on it if something begins with it.
func (p *partition) nowFor(ctx actor.Context, m messages.PartitionMessage) messages.Timestamp {
	switch m := m.(type) { //nolint:gochecksumtype // all others take the default
	case *messages.Next, *messages.Raise:
		return p.lastNow
	case *messages.Flush, *messages.Cancel:
		if !p.core.NeedsTime() {
			return p.lastNow
		}
	case *messages.EventsWritten:
		// Whoever was not written is judged again.
		if m.Outcome == messages.WriteDone && !p.core.NeedsTime() {
			return p.lastNow
		}
	}
	p.lastNow = p.now(ctx)
	return p.lastNow
}

// countAnswer keeps count of the leaves that have work in their hands. It returns
// the generation of a leaf's answer, else 0.
func (p *partition) countAnswer(m messages.PartitionMessage) uint64 {
	var generation uint64
	by := leafKinds
	switch m := m.(type) {
	case *messages.Written:
		generation, by = m.Generation, leafFlusher
	case *messages.Taken:
		generation, by = m.Generation, leafActualizer
		p.warnAhead(m.Register.LastRegisteredAt)
		p.handle.guard.notBehind(m.Register.LastRegisteredAt)
	case *messages.Replayed:
		generation, by = m.Generation, leafActualizer
	case *messages.ReplayFailed:
		generation, by = m.Generation, leafActualizer
	case *messages.Loaded:
		generation, by = m.Generation, leafReader
	case *messages.Found:
		generation, by = m.Generation, leafReader
	case *messages.EventsLoaded:
		generation, by = m.Generation, leafReader
	case *messages.EventsWritten:
		generation, by = m.Generation, leafAppender
	case *messages.Start, *messages.Append, *messages.Next, *messages.Raise, *messages.Flush, *messages.Actualize, *messages.Cancel,
		*messages.OwnerStopped, *messages.TimerFired, *messages.Stop, *messages.Reconfigure:
	}
	if by != leafKinds && generation>>incarnationShift == p.incarnation {
		p.asked[by]--
		p.answered[by]++
	}
	return generation
}

// farAhead is how long after the last event a partition is hardly ever started.
const farAhead = 365 * 24 * time.Hour

// warnAhead logs, when the partition starts, that the first reading of the clock, which is
// trusted, is far ahead of the last event.
func (p *partition) warnAhead(last messages.Timestamp) {
	now := p.handle.guard.highest
	if p.core.Status().Epoch == 0 && last != 0 && now-last > messages.Timestamp(farAhead/time.Microsecond) && p.handle.config.FarAhead.CompareAndSwap(false, true) {
		p.handle.config.Logger.Warn("clock is far ahead of the last event: later times of registration will not be earlier",
			zap.Stringer("actor", p.handle.config.Key), zap.Stringer("clock", now), zap.Stringer("last", last))
	}
}

// abandoned counts the leaves that hang.
func (p *partition) abandoned() int {
	n := 0
	for _, asked := range p.asked {
		if asked > 0 {
			n++
		}
	}
	return n
}

// childOrOwnerEnded tells the core about an owner that is gone. Leaves end only
// when the partition does.
func (p *partition) childOrOwnerEnded(ctx actor.Context, who *actor.PID) {
	if p.watched != nil && p.watched.Equal(who) {
		p.watched = nil
		token, now := p.token, p.now(ctx)
		p.carryOut(ctx, p.core.Step(nil, &messages.OwnerStopped{Token: token}, now))
	}
}

// abort answers everybody whose request this incarnation holds, and lets go of
// the leaves.
func (p *partition) abort(ctx actor.Context, why error) {
	defer logPanic(p.handle.config.Logger, p.handle.config.Key)
	if p.aborted {
		// It was stopped while it waited to be restarted.
		return
	}
	p.aborted = true
	p.cancel(why)
	p.handle.done.openSince.Store(0)
	for i := range p.timers {
		p.disarm(messages.Timer(i))
	}
	p.reply(ctx, p.core.Abort(why).Replies)
}

// ended is the actor's last word: nobody may wait for an answer any more. An actor
// that somebody stopped without asking it has not flushed.
func (p *partition) ended() {
	defer close(p.handle.terminated)
	defer p.handle.mailbox.Close()
	s := p.handle.Status()
	if s.State == messages.StateFailed && p.handle.givenUp.Load() && p.handle.stopBegun.Load() == nil {
		return // until somebody stops the partition that is how it stands
	}
	if s.State != messages.StateTerminated || s.Abandoned > 0 {
		s.State, s.Abandoned, s.Details = messages.StateTerminated, 0, ""
		p.handle.setStatus(s)
	}
}
