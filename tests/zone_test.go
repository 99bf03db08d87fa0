package tests

import (
	"context"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// TestZoneOfATransaction: the event says its zone, in whichever way it is written: in a transaction, by a command in one, by a
// command that is appended; and it needs no number.
func TestZoneOfATransaction(t *testing.T) {
	s := newSite(t, 1, partition.Settings{})
	d := s.run(t)
	ctx := limit(t)
	handled := must(d.app.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { return nil }))(t)
	drafted := must(d.app.SpawnAppendProcessor(func(_ context.Context, c *partition.DraftContext) error {
		if c.Command().Zone == "" {
			c.SetZone("Asia/Tokyo")
		}
		return nil
	}))(t)
	sequencer := must(d.app.SequencerOf(1))(t)
	tx := must(sequencer.Start(ctx, kindShop, 1, partition.SetZone("Europe/Zurich")))(t)
	check(t, tx.Commit(ctx, nil))
	for _, command := range []struct {
		processor *partition.CommandProcessor
		zone      string
	}{{handled, "America/New_York"}, {drafted, "Africa/Cairo"}, {drafted, ""}} {
		must(command.processor.Execute(ctx, messages.Command{Workspace: 1, Kind: kindShop, Zone: command.zone}))(t)
	}
	want := []string{"Europe/Zurich", "America/New_York", "Africa/Cairo", "Asia/Tokyo"}
	for e, err := range d.app.Reader().WLog(ctx, 1, 1) {
		check(t, err)
		if got := e.Zone; got != want[0] {
			t.Errorf("event %d: got zone %q, want %q", e.WLogOffset, got, want[0])
		}
		want = want[1:]
	}
	numbers := must(d.app.Reader().Numbers(ctx, 1))(t)
	if last, _ := numbers.Zones.Last(); len(want) > 0 || last.Zone.String() != "Asia/Tokyo" {
		t.Errorf("got %v, %q are missing", numbers.Zones, want)
	}
	d.stop(t)
}
