package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/replog"
)

// TestLeadSpawnsCommandProcessors at each beginning, which give numbers in interactive transactions.
func TestLeadSpawnsCommandProcessors(t *testing.T) {
	t.Parallel()
	spawned := make(chan *partition.CommandProcessor, 10)
	r := newRig(t, func(_ replog.NodeID, o *Options) {
		o.Lead = func(_ context.Context, app *partition.App) error {
			p, err := app.SpawnCommandProcessor(func(ctx context.Context, c *partition.CommandContext) error {
				_, err := c.Next(ctx, invoice)
				return err
			})
			if err == nil {
				spawned <- p
			}
			return err
		}
	})
	for n := messages.Number(1); n <= 5; n++ {
		owner := r.owner()
		var p *partition.CommandProcessor
		select {
		case p = <-spawned:
		case <-r.ctx.Done():
			t.Fatal("Lead is not called")
		}
		for len(spawned) > 0 { // of a leadership that has ended
			p = <-spawned
		}
		ctx, cancel := context.WithTimeout(r.ctx, patience)
		done, err := p.Execute(ctx, messages.Command{Workspace: 1, Kind: shop})
		cancel()
		if err != nil {
			// It does not lead any more: nobody carries a command on. It may be there.
			t.Logf("node %s: %v", owner.o.Node, err)
			n = r.last()
			continue
		}
		if got := done.Numbers[0].Number; got != n {
			t.Errorf("got number %d, want %d", got, n)
		}
		r.handOver(owner)
	}
}

// last returns the last invoice of workspace 1, as the owner has it.
func (r *rig) last() messages.Number {
	r.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if numbers, err := r.owner().Reader().Numbers(r.ctx, 1); err == nil {
			for _, n := range numbers.Of(invoice) {
				return n.Number
			}
			return 0
		}
	}
	r.Fatal("the owner does not say what it has")
	return 0
}
