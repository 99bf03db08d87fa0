package partition_test

import (
	"context"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// TestConfigure: settings and bounds of lanes change at partitions and command processors, at those too that come later; what
// is wrong changes nothing.
func TestConfigure(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	a := h.deploy(app, h.newStore(app.Descriptor))
	spawn := func() {
		t.Helper()
		_, err := a.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { return nil })
		h.check(err)
	}
	spawn()
	lanes := func(requests, bytes int) {
		t.Helper()
		f := a.Figures()
		for _, p := range f.Partitions {
			if p.Requests.MostRequests != requests || p.Requests.MostBytes != bytes {
				t.Errorf("partition: got %+v, want %d and %d", p.Requests, requests, bytes)
			}
		}
		for _, p := range f.Processors {
			if p.MostRequests != requests || p.MostBytes != bytes {
				t.Errorf("command processor: got %+v, want %d and %d", p, requests, bytes)
			}
		}
	}
	want := partition.Config{Settings: partition.Settings{FlushInterval: time.Second}.WithDefaults(), RequestLane: 7, RequestLaneBytes: 900}
	h.check(a.Configure(h.ctx, want))
	spawn()
	lanes(7, 900)
	for _, wrong := range []partition.Config{
		{RequestLane: -1}, {RequestLaneBytes: -1}, {RequestLane: 9, Settings: partition.Settings{FlushInterval: -1}},
	} {
		wants(t, "configure", a.Configure(h.ctx, wrong), messages.ErrSettings)
	}
	if got := a.Config(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	lanes(7, 900)
	h.check(a.Reconfigure(h.ctx, partition.Settings{}))
	lanes(7, 900)
	h.check(a.Configure(h.ctx, partition.Config{}))
	lanes(1024, 16<<20)
}
