package metrics_test

import (
	"context"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/metrics"
	"github.com/partita-go/partita/partition"
)

// TestMembersOfGroups: a group of command processors is a group of actors like others, each of which is counted once, and
// only while it is there.
func TestMembersOfGroups(t *testing.T) {
	r := newRig(t, metrics.Options{Keys: []string{"group-bills"}})
	group, err := r.app.SpawnGroup(partition.GroupConfig{
		Name: "bills", Members: 3, Drafter: func(context.Context, *partition.DraftContext) error { return nil },
	})
	r.check(err)
	_, err = group.Ask(r.ctx, messages.Command{Workspace: 4, Kind: shop})
	r.check(err)
	count := func() (n float64) {
		for _, m := range r.gather().find("partita_active_actors", "actor_group=group-bills") {
			n += m.GetGauge().GetValue()
		}
		return n
	}
	if n := count(); n != 3 {
		t.Errorf("got %v members, want 3", n)
	}
	r.check(group.Resize(r.ctx, 1))
	if n := count(); n != 1 {
		t.Errorf("got %v members, want 1", n)
	}
	r.check(group.Stop(r.ctx))
	if n := count(); n != 0 {
		t.Errorf("got %v members of a group that has ended", n)
	}
	if lanes := r.gather().find("partita_lane_requests", "actor_group=group-bills"); len(lanes) != 0 {
		t.Errorf("got the lanes of a group that has ended: %v", lanes)
	}
}

// TestProcessorsThatHaveEnded: they are shown no more when there are others.
func TestProcessorsThatHaveEnded(t *testing.T) {
	r := newRig(t, metrics.Options{Keys: []string{"command-processor"}})
	for range 3 {
		p, err := r.app.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { return nil })
		r.check(err)
		r.check(p.Stop(r.ctx))
	}
	_, err := r.app.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { return nil })
	r.check(err)
	if got := len(r.app.Actors()) - len(r.app.Status()); got != 1 {
		t.Errorf("got %d command processors, want 1: %+v", got, r.app.Actors())
	}
	r.gather().want(0, "partita_lane_requests", "actor_group=command-processor", "actor_key=3")
	if lanes := r.gather().find("partita_lane_requests", "actor_group=command-processor"); len(lanes) != 1 {
		t.Errorf("got %v", lanes)
	}
}
