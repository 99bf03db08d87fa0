package actors_test

import (
	"context"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/messages"
)

// A deadline is the machine's time: whatever the partition's clock says, ahead, behind or
// standing still, a call with a deadline to come goes on, and one whose deadline has passed does not.
func TestDeadlineWithAnotherClock(t *testing.T) {
	for name, ahead := range map[string]time.Duration{
		"fifty years ahead": 50 * 365 * 24 * time.Hour, "an hour behind": -time.Hour, "thirty years behind": -30 * 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{clock: actorstest.NewFakeClock(time.Now().Add(ahead))})
			processor := r.spawnProcessor(10, func(context.Context, *actors.CommandContext) error { return nil })
			ctx, cancel := context.WithTimeout(r.ctx, 20*time.Second)
			defer cancel()
			draft := messages.Draft{Wanted: []messages.Wanted{{Seq: invoices}}}
			calls := map[string]func(context.Context) error{
				"Start": func(ctx context.Context) error {
					tx, err := r.of(7).Start(ctx, shop, 7)
					if err != nil {
						return err
					}
					return tx.Commit(ctx, nil)
				},
				"Append": func(ctx context.Context) error {
					_, err := r.of(7).Append(ctx, actors.AppendTo{Workspace: 7, Kind: shop}, draft)
					return err
				},
				"Command": func(ctx context.Context) error {
					_, err := processor.Execute(ctx, messages.Command{Workspace: 7, Kind: shop})
					return err
				},
			}
			ended, end := context.WithDeadline(r.ctx, time.Now().Add(-time.Second))
			defer end()
			for name, call := range calls {
				wants(t, name, call(ctx), nil)
				wants(t, name, call(ended), context.DeadlineExceeded)
			}
			if n := len(r.log(0)); n != len(calls) {
				t.Errorf("got %d events, want %d", n, len(calls))
			}
		})
	}
}
