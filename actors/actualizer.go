package actors

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/messages"
)

// tailPiece is how many events the actualizer sends at once.
const tailPiece = 4096

// actualizer takes the partition's epochs and reads the tail of its log, piece
// by piece, as the partition gives credit.
type actualizer struct {
	*leaf
	permitted bool
}

func (a *actualizer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.ActualizerMessage:
		a.handle(ctx, m)
	case *actor.Stopping, *actor.Restarting:
		a.release()
	case actor.AutoReceiveMessage, actor.SystemMessage:
	default:
		a.unhandled(m)
	}
}

func (a *actualizer) handle(ctx actor.Context, m messages.ActualizerMessage) {
	switch m := m.(type) {
	case *messages.Replay:
		ctx.Send(ctx.Parent(), a.take(m))
	case *messages.Credit:
		ctx.Send(ctx.Parent(), a.read(m))
	case *messages.EndReplay:
		a.release()
	}
}

func (a *actualizer) take(m *messages.Replay) messages.PartitionMessage {
	if err := a.acquire(); err != nil {
		return a.failed(m.Generation, err)
	}
	register, err := a.store.TakeEpoch(a.ctx, a.partition)
	if err != nil {
		return a.failed(m.Generation, err)
	}
	return &messages.Taken{Generation: m.Generation, Register: register}
}

func (a *actualizer) read(m *messages.Credit) messages.PartitionMessage {
	if err := a.acquire(); err != nil {
		return a.failed(m.Generation, err)
	}
	events, err := a.store.Tail(a.ctx, a.partition, m.From, tailPiece)
	if err != nil {
		return a.failed(m.Generation, err)
	}
	return &messages.Replayed{Generation: m.Generation, Events: events}
}

func (a *actualizer) failed(generation uint64, err error) *messages.ReplayFailed {
	a.release()
	outcome, offset := outcomeOf(err)
	return &messages.ReplayFailed{Generation: generation, Outcome: outcome, Err: err, PLogOffset: offset}
}

// acquire waits until fewer partitions than permitted replay.
func (a *actualizer) acquire() error {
	if a.permitted {
		return nil
	}
	select {
	case a.permits <- struct{}{}:
		a.permitted = true
		return nil
	case <-a.ctx.Done():
		return context.Cause(a.ctx)
	}
}

func (a *actualizer) release() {
	if a.permitted {
		a.permitted = false
		<-a.permits
	}
}
