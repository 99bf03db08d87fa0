package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors/base"
	"github.com/partita-go/partita/internal/sequencer"
	"github.com/partita-go/partita/messages"
)

// timerMessages are sent again and again: a message is never changed.
var timerMessages = func() (all [messages.Timers]*messages.TimerFired) {
	for i := range all {
		all[i] = &messages.TimerFired{Timer: messages.Timer(i)}
	}
	return all
}()

// carryOut does what the core wants.
func (p *partition) carryOut(ctx actor.Context, fx *sequencer.Effects) {
	p.watch(ctx, fx)
	p.command(ctx, fx)
	for _, a := range fx.Arm {
		p.arm(ctx, a)
	}
	// Whoever sees the new state sees how far the log is, too.
	p.noteReach()
	if fx.Status {
		p.handle.setStatus(p.status(fx.Stopped))
	}
	if fx.Stopped {
		p.countAbandoned(fx.Replies)
	}
	p.hold(!p.core.TakesRequests())
	p.countOpen()
	p.reply(ctx, fx.Replies)
	if fx.Stopped {
		p.handle.mailbox.Close()
		ctx.Stop(ctx.Self())
	}
}

// hold leaves the request lane alone, or takes requests again.
func (p *partition) hold(held bool) {
	switch {
	case held == p.held:
		return
	case held:
		p.handle.mailbox.Hold()
	default:
		p.handle.mailbox.Release()
	}
	p.held = held
}

// watch follows the owner of the open transaction if it is an actor.
func (p *partition) watch(ctx actor.Context, fx *sequencer.Effects) {
	if fx.Unwatch != nil && p.watched != nil {
		ctx.Unwatch(p.watched)
		p.watched = nil
	}
	if owner := base.PIDOf(fx.Watch); owner != nil {
		p.watched = owner
		p.token = startedToken(fx.Replies)
		ctx.Watch(owner)
	}
}

func startedToken(replies []sequencer.Reply) messages.Token {
	for _, r := range replies {
		if s, ok := r.Message.(*messages.Started); ok {
			return s.Token
		}
	}
	return messages.Token{}
}

// command hands work to the leaves.
func (p *partition) command(ctx actor.Context, fx *sequencer.Effects) {
	if fx.Flusher != nil {
		p.ask(ctx, leafFlusher)
		p.send(ctx, leafFlusher, fx.Flusher)
	}
	if fx.Appender != nil {
		p.ask(ctx, leafAppender)
		p.write(ctx, fx.Appender)
	}
	for _, m := range fx.Actualizer {
		if _, end := m.(*messages.EndReplay); !end {
			p.ask(ctx, leafActualizer)
		}
		p.send(ctx, leafActualizer, m)
	}
	for _, m := range fx.Reader {
		p.ask(ctx, leafReader)
		if _, load := m.(*messages.LoadNumbers); load {
			p.handle.config.Tally.read.Add(1)
		}
		p.send(ctx, leafReader, m)
	}
}

// send hands a message to a leaf, which is made if there is none. Its queue is bounded: one
// flush, one batch, one replay, or the loads and late flushes that the core allows.
// An actor that ends has told its leaves to end, and would wait for ever for one made later.
func (p *partition) send(ctx actor.Context, k leafKind, message any) {
	if pid := p.leafFor(ctx, k); pid != nil {
		ctx.Send(pid, message)
	}
}

// leafFor returns a leaf, nil if there must be none any more.
func (p *partition) leafFor(ctx actor.Context, k leafKind) *actor.PID {
	if p.aborted {
		return nil
	}
	if p.leaves[k] == nil {
		c := &p.handle.config
		p.spawned++
		leaves := parent{c.Key, p.incarnation, c.Dispatcher, c.System, c.Observer}
		p.leaves[k] = leaves.spawn(ctx, leafNames[k], p.spawned, func() actor.Actor { return p.leaf.produce(k) })
	}
	return p.leaves[k]
}

// rest ends the leaves if there is no work for them: most of many partitions have none most
// of the time. One that is busy always has something that is not flushed.
func (p *partition) rest(ctx actor.Context) {
	if p.works() || !p.core.Flushed() {
		return
	}
	p.calm()
	p.core.Trim()
	for k, pid := range p.leaves {
		if pid != nil {
			ctx.Stop(pid)
			p.leaves[k] = nil
		}
	}
}

// write hands a batch to the store itself as far as that does not block: the way over the
// appender wakes two goroutines more.
func (p *partition) write(ctx actor.Context, m *messages.WriteEvents) {
	if p.leaf.submitter == nil {
		p.send(ctx, leafAppender, m)
		return
	}
	p.handle.mailbox.TellSent(m)
	root := ctx.ActorSystem().Root
	do := p.leaf.submitter.Submit(p.leaf.batch(m), answerTo(root, ctx.Self(), m))
	if do == nil {
		return
	}
	p.leaf.rest.Store(&rest{m.Generation, m.Events[0].PLogOffset, do})
	if pid := p.leafFor(ctx, leafAppender); pid != nil {
		root.Send(pid, m) // that it was sent is told already
	}
}

func (p *partition) reply(ctx actor.Context, replies []sequencer.Reply) {
	for _, r := range replies {
		p.handle.count(r.Message)
		p.handle.mailbox.Answer(ctx, r.To, r.Message)
	}
}

func (p *partition) arm(ctx actor.Context, a sequencer.Alarm) {
	p.disarm(a.Timer) // after new settings the earlier one still runs
	self, root, message := ctx.Self(), ctx.ActorSystem().Root, timerMessages[a.Timer]
	p.timers[a.Timer] = p.handle.config.Clock.AfterFunc(a.After, func() { root.Send(self, message) })
}

func (p *partition) disarm(t messages.Timer) {
	if p.timers[t] != nil {
		p.timers[t].Stop()
	}
}

func (p *partition) status(stopped bool) messages.PartitionStatus {
	s := p.core.Status()
	if stopped {
		s.Abandoned = p.abandoned()
	}
	s.Full = p.full()
	alarms := p.alarms(&s)
	if s.State == messages.StateNormal && len(alarms) > 0 {
		s.State = messages.StateAlarming
	}
	s.Details = joinDetails(detailsOf(&s), alarms...)
	return s
}

// countAbandoned completes the answer to whoever stopped the partition.
func (p *partition) countAbandoned(replies []sequencer.Reply) {
	for _, r := range replies {
		if s, ok := r.Message.(*messages.Stopped); ok {
			s.Abandoned = p.abandoned()
		}
	}
}
