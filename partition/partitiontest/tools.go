package partitiontest

import (
	"time"

	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/partition"
)

// Append appends an event, which must succeed.
func (a *App) Append(to partition.AppendTo, draft partition.Draft) *partition.Appended {
	a.t.Helper()
	done, err := a.TryAppend(to, draft)
	a.check("append", err)
	return done
}

// TryAppend appends an event, which may fail.
func (a *App) TryAppend(to partition.AppendTo, draft partition.Draft) (*partition.Appended, error) {
	ctx, done := a.limit()
	defer done()
	sequencer, err := a.SequencerOf(to.Workspace)
	if err != nil {
		return nil, err
	}
	return sequencer.Append(ctx, to, draft)
}

// Await waits until a condition holds that others bring about. The clock stands.
func (a *App) Await(what string, holds func() bool) {
	a.t.Helper()
	a.await(what, holds, func() {})
}

// AdvanceUntil moves the clock on by a step, again and again, until a condition holds: for what is tried again after
// some time. How far the clock has moved then is not known.
func (a *App) AdvanceUntil(step time.Duration, what string, holds func() bool) {
	a.t.Helper()
	a.await(what, holds, func() { a.Clock.Advance(step) })
}

func (a *App) await(what string, holds func() bool, meanwhile func()) {
	a.t.Helper()
	ctx, done := a.limit()
	defer done()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
			meanwhile()
		case <-ctx.Done():
			a.t.Fatalf("%v: %s", errPatience, what)
		}
	}
}

// Probe spawns an actor that the test acts for: the owner of a transaction or the sender of a command that speaks by
// messages, or the partition that an actor of yours speaks with. See [actorstest.Expect].
func (a *App) Probe() *actorstest.Probe {
	a.t.Helper()
	return actorstest.NewProbe(a.t, a.System, a.options.Patience)
}
