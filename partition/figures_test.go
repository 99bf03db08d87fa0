package partition_test

import (
	"testing"
	"time"

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
	_, err := a.SpawnAppendProcessor(nil)
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
	want := partition.LaneFigures{MostRequests: 7, MostBytes: 1000}
	if p.Requests != want || len(f.Processors) != 1 || f.Processors[0] != want {
		t.Errorf("got %+v, %+v, want %+v", p.Requests, f.Processors, want)
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
	if got := a.Figures().Refusals["mailbox-full"]; got != 1 {
		t.Errorf("got %d", got)
	}
	h.check(tx.Cancel(h.ctx))
	h.check(<-waiting)
}
