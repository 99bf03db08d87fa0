package partitiontest

import (
	"context"
	"errors"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/verify"
)

// AssertGapless fails the test unless each log is 1, 2, 3 …, each sequence of each workspace goes up by one in each of
// its periods, from its initial value on, and whatever else a store at rest can show is right. It waits until nobody
// writes. The same is checked when the test ends.
func (a *App) AssertGapless() {
	a.t.Helper()
	a.endCrash()
	ctx, done := a.limit()
	defer done()
	if err := gapless(ctx, a.memory); err != nil {
		a.t.Errorf("gapless: %v", err)
	}
}

func gapless(ctx context.Context, s storage.Store) error {
	report, err := verify.Run(ctx, s, verify.Options{})
	for errors.Is(err, verify.ErrNotAtRest) && ctx.Err() == nil {
		report, err = verify.Run(ctx, s, verify.Options{})
	}
	return errors.Join(err, report.Err())
}

// AssertNumbers fails the test unless a workspace was given exactly the numbers from first to last of a sequence, each
// once and in this order, in a period; the period of a sequence that never restarts is 0. None if last is below first.
func (a *App) AssertNumbers(ws messages.WSID, of messages.SequencePeriod, first, last messages.Number) {
	a.t.Helper()
	var got, want []messages.Number
	for _, e := range a.Events(ws) {
		for _, n := range e.Numbers {
			if n.SequencePeriod() == of {
				got = append(got, n.Number)
			}
		}
	}
	for n := first; n <= last; n++ {
		want = append(want, n)
	}
	if !slices.Equal(got, want) {
		a.t.Errorf("workspace %d, sequence %d, period %v: got the numbers %d, want %d", ws, of.Seq, of.Period, got, want)
	}
}

// Events returns the log of a workspace, also while the application is down.
func (a *App) Events(ws messages.WSID) []messages.Event {
	a.t.Helper()
	a.endCrash()
	var all []messages.Event
	for e, err := range a.memory.WLog(context.Background(), ws, 1) {
		a.check("events", err)
		all = append(all, e)
	}
	return all
}
