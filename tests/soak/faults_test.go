package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

var errInjected = errors.New("injected")

// sufferings are what the store suffers, each for a while.
var sufferings = []storagetest.Fault{
	{Op: storagetest.OpAppend, Do: storagetest.UnknownDone(), Chance: 0.02},
	{Op: storagetest.OpAppend, Do: storagetest.UnknownNotDone(), Chance: 0.02},
	{Op: storagetest.OpAppend, Do: storagetest.Full(), Chance: 0.5},
	{Op: storagetest.OpAppend, Do: storagetest.Panic("injected"), Chance: 0.01},
	{Op: storagetest.OpFlush, Do: storagetest.Fail(errInjected)},
	{Op: storagetest.OpFlush, Do: storagetest.UnknownDone(), Chance: 0.3},
	{Op: storagetest.OpFlush, Do: storagetest.Panic("injected"), Times: 3},
	{Op: storagetest.OpNumbers, Do: storagetest.Fail(errInjected), Chance: 0.1},
	{Op: storagetest.OpFind, Do: storagetest.Fail(errInjected), Chance: 0.1},
	{Op: storagetest.OpFind, Do: storagetest.Panic("injected"), Times: 3},
	{Op: storagetest.OpWLog, Do: storagetest.Break(1, errInjected), Chance: 0.2},
	{Op: storagetest.OpTail, Do: storagetest.Fail(errInjected), Chance: 0.2},
	{Op: storagetest.OpTakeEpoch, Do: storagetest.Fail(errInjected), Chance: 0.2},
	{Op: storagetest.OpTakeEpoch, Do: storagetest.UnknownDone(), Chance: 0.2},
	{Op: storagetest.OpMoveSubscription, Do: storagetest.Full(), Chance: 0.5},
	{Op: storagetest.OpMoveSubscription, Do: storagetest.UnknownDone(), Chance: 0.2},
	{Op: storagetest.OpMoveSubscription, Do: storagetest.Panic("injected"), Times: 3},
	{Op: storagetest.OpSubscription, Do: storagetest.Fail(errInjected), Chance: 0.5},
	{Op: storagetest.OpPLog, Do: storagetest.Break(1, errInjected), Chance: 0.2},
}

// holdable are the calls that hang now and then.
var holdable = []storagetest.Op{storagetest.OpAppend, storagetest.OpFlush, storagetest.OpNumbers, storagetest.OpTakeEpoch}

// suffer makes trouble until the context ends: one thing after the other, for about a
// quarter of the time where the store can suffer. What hangs is let go.
func (r *run) suffer(ctx context.Context, d *deployment, random *rand.Rand) {
	for ctx.Err() == nil {
		wait(ctx, between(random, r.plan.unit/10, 3*r.plan.unit))
		switch n := random.IntN(8); {
		case n == 0:
			r.abandon(ctx, d, messages.WSID(random.Uint64N(workspaces)))
		case n == 1:
			d.fatal.Store(true)
		case d.faulty == nil:
		case n == 2:
			r.hang(ctx, d.faulty, random)
		default:
			f := sufferings[random.IntN(len(sufferings))]
			f.Seed = random.Uint64()
			d.faulty.Plant(f)
			wait(ctx, between(random, r.plan.unit/50, r.plan.unit))
			d.faulty.Heal()
		}
	}
}

// hang lets a call hang for a while.
func (r *run) hang(ctx context.Context, store *storagetest.Faulty, random *rand.Rand) {
	gate := storagetest.NewGate()
	defer gate.Release()
	op := holdable[random.IntN(len(holdable))]
	do := []storagetest.Effect{storagetest.Hold(gate), storagetest.HoldAnswer(gate)}[random.IntN(2)]
	store.Plant(storagetest.Fault{Op: op, Do: do, Times: 1})
	wait(ctx, between(random, r.plan.unit/50, r.plan.unit))
	store.Heal()
	select {
	case <-gate.Arrived():
		r.count(hangs, 1)
	default:
	}
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

// failed counts a failed call. An error that none of what is done here explains is
// trouble.
func (r *run) failed(err error) {
	switch {
	case errors.Is(err, messages.ErrOutcomeUnknown):
		r.count(unknown, 1)
		return
	case errors.Is(err, messages.ErrBusy):
		r.count(busy, 1)
		return
	}
	r.count(refused, 1)
	for _, expected := range []error{
		context.DeadlineExceeded, context.Canceled, messages.ErrDeadlineExceeded, messages.ErrFenced, messages.ErrNoTransaction,
		messages.ErrInterrupted, partition.ErrStopped, actors.ErrHandlerPanic, storage.ErrTailFull, storage.ErrFull, errInjected,
	} {
		if errors.Is(err, expected) {
			return
		}
	}
	r.troublef("a call failed: %v", err)
}
