package partition_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// TestFiguresAreWhatWasDone: appends, transactions, refusals and repeats are counted by the time that they are
// answered, and what is open is seen.
func TestFiguresAreWhatWasDone(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	app.RequestLane, app.RequestLaneBytes = 7, 1000
	a := h.deploy(app, h.newStore(app.Descriptor))
	_, err := a.SpawnAppendProcessor(func(context.Context, *partition.DraftContext) error { return nil })
	h.check(err)
	s, err := a.SequencerOf(4)
	h.check(err)
	to := partition.AppendTo{Workspace: 4, Kind: shop, DedupID: partition.DedupID{1}}
	for range 3 {
		_, err = s.Append(h.ctx, to, partition.Draft{})
		h.check(err)
	}
	to.DedupID, to.Expected = partition.DedupID{}, new(messages.WLogOffset)
	_, err = s.Append(h.ctx, to, partition.Draft{})
	wants(t, "append", err, messages.ErrExpectedOffset)
	h.commit(a, 4)
	tx, err := s.Start(h.ctx, shop, 4)
	h.check(err)

	f := a.Figures()
	p := f.Partitions[0]
	if p.Appends != 1 || p.Transactions != 1 || p.Recovery <= 0 {
		t.Errorf("got %+v", p)
	}
	if p.OpenSince != tx.RegisteredAt() || f.At.Sub(p.OpenSince.Time()) > time.Minute {
		t.Errorf("got open since %v, now %v, want %v", p.OpenSince, f.At, tx.RegisteredAt())
	}
	want := partition.LaneFigures{Key: partition.ActorKey{Group: "partition", ID: "0"}, MostRequests: 7, MostBytes: 1000}
	if p.Requests != want {
		t.Errorf("got %+v, want %+v", p.Requests, want)
	}
	want.Key.Group = "command-processor"
	if len(f.Processors) != 1 || f.Processors[0] != want {
		t.Errorf("got %+v, want %+v", f.Processors, want)
	}
	if f.Repeats != 2 || f.Reads != 1 || f.Changes[messages.StateNormal] != 4 || f.Changes[messages.StateFailed] != 0 {
		t.Errorf("got %+v", f.Counts)
	}
	for reason, n := range f.Refusals {
		if reason == "expected-offset" && n != 1 || reason != "expected-offset" && n != 0 {
			t.Errorf("got %d refusals: %s", n, reason)
		}
	}
	h.check(tx.Cancel(h.ctx))
	if p := a.Figures().Partitions[0]; p.OpenSince != 0 || p.Transactions != 1 {
		t.Errorf("after it: got %+v", p)
	}
}

// TestFiguresCountFullLanes: whoever finds no place in the lane is counted, and what waits is seen.
func TestFiguresCountFullLanes(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	app.RequestLane = 1
	a := h.deploy(app, h.newStore(app.Descriptor))
	s, err := a.SequencerOf(4)
	h.check(err)
	tx, err := s.Start(h.ctx, shop, 4)
	h.check(err)
	waiting := make(chan error)
	go func() {
		second, err := s.Start(h.ctx, shop, 4)
		if err == nil {
			err = second.Cancel(h.ctx)
		}
		waiting <- err
	}()
	h.eventually("one to wait", func() bool { return a.Figures().Partitions[0].Requests.Requests == 1 })
	_, err = s.Start(h.ctx, shop, 4)
	wants(t, "start", err, messages.ErrBusy)
	if got := a.Figures(); got.Refusals["mailbox-full"] != 1 || got.Busy["RequestLane"] != 1 || got.Busy["RequestLaneBytes"] != 0 {
		t.Errorf("got %+v", got.Counts)
	}
	h.check(tx.Cancel(h.ctx))
	h.check(<-waiting)
}

// TestNamesOfZonesAreCounted: what waits in a lane counts with all that it keeps in memory, also a name that no zone has.
func TestNamesOfZonesAreCounted(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	a := h.deploy(app, h.newStore(app.Descriptor))
	zone := strings.Repeat("z", 100_000)
	s, err := a.SequencerOf(4)
	h.check(err)
	entered, release := make(chan struct{}, 1), make(chan struct{})
	p, err := a.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error {
		entered <- struct{}{}
		<-release
		return nil
	})
	h.check(err)
	answers := make(chan error, 4)
	ask := func(f func() error) { go func() { answers <- f() }() }
	command := messages.Command{Workspace: 4, Kind: shop}
	ask(func() error { _, err := p.Execute(h.ctx, command); return err })
	soon(h, "the handler", entered)
	command.Zone = zone
	ask(func() error { _, err := p.Execute(h.ctx, command); return err })
	ask(func() error { _, err := s.Start(h.ctx, shop, 4, partition.SetZone(zone)); return err })
	ask(func() error {
		_, err := s.Append(h.ctx, partition.AppendTo{Workspace: 4, Kind: shop}, partition.Draft{Zone: zone})
		return err
	})
	h.eventually("all to wait", func() bool { return p.Requests().Requests == 1 && a.Figures().Partitions[0].Requests.Requests == 2 })
	if got := p.Requests().Bytes; got < len(zone) {
		t.Errorf("command: got %d bytes", got)
	}
	if got := a.Figures().Partitions[0].Requests.Bytes; got < 2*len(zone) {
		t.Errorf("append and transaction: got %d bytes", got)
	}
	close(release)
	for range cap(answers) {
		if err := soon(h, "an answer", answers); err != nil {
			wants(t, "zone", err, calendar.ErrZone)
		}
	}
}

// TestHintOfAFullLane: whoever finds no place is told when to try again, by the settings that are in force.
func TestHintOfAFullLane(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	app.RequestLane = 1
	a := h.deploy(app, h.newStore(app.Descriptor))
	h.check(a.Reconfigure(h.ctx, partition.Settings{FlushInterval: 7 * time.Second}))
	s, err := a.SequencerOf(4)
	h.check(err)
	tx, err := s.Start(h.ctx, shop, 4)
	h.check(err)
	ctx, cancel := context.WithCancel(h.ctx)
	waiting := make(chan error, 1)
	go func() {
		_, err := s.Start(ctx, shop, 4)
		waiting <- err
	}()
	h.eventually("one to wait", func() bool { return a.Figures().Partitions[0].Requests.Requests == 1 })
	_, err = s.Start(h.ctx, shop, 4)
	var busy *messages.BusyError
	if !errors.As(err, &busy) || busy.RetryAfter != 7*time.Second {
		t.Errorf("got %+v", err)
	}
	cancel()
	wants(t, "start", soon(h, "an answer", waiting), context.Canceled)
	h.check(tx.Cancel(h.ctx))
}
