package actors

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/replog"
)

// tailPiece is how many events the actualizer sends at once.
const tailPiece = 4096

// actualizer takes the partition's epochs and reads the tail of its log, piece
// by piece, as the partition gives credit.
type actualizer struct {
	*leaf
	// permit is the one that it holds or waits for, nil if there is none.
	permit *permit
	// work is what it does when it has the permit, nil if there is nothing to do.
	work func() messages.PartitionMessage
	// generation is that of the work.
	generation uint64
}

// permitted tells an actualizer that it has the permit that it has waited for.
type permitted struct{ permit *permit }

func (a *actualizer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case permitted:
		if m.permit == a.permit {
			a.workNow(ctx)
		}
	case *actor.Stopping, *actor.Restarting:
		a.release()
	default:
		receive(ctx, a.leaf, a.handle)
	}
}

func (a *actualizer) handle(ctx actor.Context, m messages.ActualizerMessage) {
	if a.work != nil {
		// The partition has failed, or begun anew, and counts the answers.
		ctx.Send(ctx.Parent(), a.failed(a.generation, context.Canceled))
		a.work = nil
	}
	switch m := m.(type) {
	case *messages.Replay:
		a.await(ctx, a.epochPermits, m.Generation, func() messages.PartitionMessage { return a.take(m) })
	case *messages.Credit:
		a.await(ctx, a.permits, m.Generation, func() messages.PartitionMessage { return a.read(m) })
	case *messages.EndReplay:
		a.release()
	}
}

// await does its work as soon as it has one of the permits.
func (a *actualizer) await(ctx actor.Context, of *Permits, generation uint64, work func() messages.PartitionMessage) {
	a.work, a.generation = work, generation
	now := a.permit != nil && a.permit.of == of
	if !now {
		a.release()
		root, self := ctx.ActorSystem().Root, addressOf(ctx.Self())
		a.permit, now = of.ask(func(p *permit) { root.Send(self, permitted{p}) })
	}
	if now {
		a.workNow(ctx)
	}
}

func (a *actualizer) workNow(ctx actor.Context) {
	work := a.work
	a.work = nil
	ctx.Send(ctx.Parent(), work())
}

// take gives its permit back at once: those who have their epoch may wait for a while until
// they replay.
func (a *actualizer) take(m *messages.Replay) messages.PartitionMessage {
	register, err := a.store.TakeEpoch(a.ctx, a.partition)
	a.release()
	if err != nil {
		return a.failed(m.Generation, err)
	}
	return &messages.Taken{Generation: m.Generation, Register: register}
}

func (a *actualizer) read(m *messages.Credit) messages.PartitionMessage {
	events, err := a.store.Tail(a.ctx, a.partition, m.From, tailPiece)
	if err != nil {
		return a.failed(m.Generation, err)
	}
	return &messages.Replayed{Generation: m.Generation, Events: events}
}

func (a *actualizer) failed(generation uint64, err error) *messages.ReplayFailed {
	a.release()
	outcome, offset := outcomeOf(err)
	return &messages.ReplayFailed{
		Generation: generation, Outcome: outcome, Err: err, PLogOffset: offset, Elsewhere: errors.Is(err, replog.ErrNotOwner),
	}
}

// release gives its permit back, or waits for one no more.
func (a *actualizer) release() {
	if a.permit != nil {
		a.permit.giveBack()
		a.permit = nil
	}
}
