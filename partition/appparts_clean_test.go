package partition_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/storagetest"
)

// The contexts of callers end in Commit, when their writes are under way; then the application
// is stopped: it asks the log what has become of them, and is clean.
func TestUndeployAfterCancelledCommits(t *testing.T) {
	for name, do := range map[string]func(*storagetest.Gate) storagetest.Effect{
		"handed over": storagetest.HoldAnswer, "not handed over": storagetest.Hold,
	} {
		for wait, answered := range map[string]bool{"answered": true, "not answered": false} {
			t.Run(name+", "+wait, func(t *testing.T) {
				h := newHouse(t, partition.Options{})
				app := billing("one")
				store := h.newStore(app.Descriptor)
				for range 40 {
					h.stopsCleanly(app, store, do, answered)
				}
			})
		}
	}
}

// stopsCleanly cancels four commits under way and undeploys the application, when they are
// answered or at once. The next deployment has nothing to replay.
func (h *house) stopsCleanly(app partition.Application, store *storagetest.Faulty, do func(*storagetest.Gate) storagetest.Effect, answered bool) {
	h.t.Helper()
	a := h.deploy(app, store)
	for _, s := range a.Status() {
		if s.Replayed != 0 {
			h.t.Fatalf("replayed %d events after a clean stop", s.Replayed)
		}
	}
	gate := h.newGate()
	store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: do(gate), Times: 4})
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	answers := make(chan error, 4)
	for ws := range messages.WSID(4) {
		s, err := a.SequencerOf(ws)
		h.check(err)
		tx, err := s.Start(ctx, shop, ws)
		h.check(err)
		_, err = tx.Next(ctx, invoices)
		h.check(err)
		go func() { answers <- tx.Commit(ctx, nil) }()
		h.check(gate.Await(h.ctx))
	}
	cancel()
	answer := func() {
		for range 4 {
			if err := soon(h, "an answer", answers); !errors.Is(err, context.Canceled) {
				h.t.Errorf("got %v, want %v", err, context.Canceled)
			}
		}
	}
	if answered {
		answer()
	}
	wants(h.t, "undeploy", h.parts.Undeploy(h.ctx, "one"), nil)
	if !answered {
		answer()
	}
	store.Heal()
}

// A partition that replays its tail, or waits for its turn to do so, is let finish.
func TestUndeployWhileInitializing(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	app.Actualizations = 1
	store := h.newStore(app.Descriptor)
	a := h.deploy(app, store)
	for ws := range messages.WSID(8) {
		h.commit(a, ws)
	}
	for range 40 {
		wants(t, "undeploy", h.parts.Undeploy(h.ctx, "one"), nil)
		if _, err := h.parts.Deploy(h.ctx, app, store); err != nil {
			t.Fatal(err)
		}
	}
	a, err := h.parts.App("one")
	h.check(err)
	h.check(a.Ready(h.ctx))
	if n := h.commit(a, 3); n != 2 {
		t.Errorf("got number %d, want 2", n)
	}
}

// neighbour is another AppParts, which ends before the house does.
func (h *house) neighbour() *house {
	h.t.Helper()
	other := &house{t: h.t, ctx: h.ctx, parts: partition.NewAppParts(shared, partition.Options{})}
	h.t.Cleanup(func() { h.check(other.parts.Close(h.ctx)) })
	return other
}

// A store knows that it is deployed, by whichever AppParts and behind whatever wraps it. Undeploy
// gives it back, also when it was not clean; what ctx has ended is deployed still.
func TestDeployOverAStoreInUse(t *testing.T) {
	one := newHouse(t, partition.Options{})
	two := one.neighbour()
	app := hurried("one")
	faulty := one.newStore(app.Descriptor)
	store := deaf{faulty}
	a := one.deploy(app, store)
	refused := func(when string) {
		t.Helper()
		_, err := two.parts.Deploy(two.ctx, app, faulty)
		wants(t, when, err, partition.ErrStoreInUse)
		if !strings.Contains(err.Error(), `"one"`) {
			t.Errorf("got %v, want the application's name", err)
		}
	}
	refused("deployed")
	if n := one.commit(a, 3); n != 1 {
		t.Errorf("got number %d, want 1: nobody was fenced", n)
	}
	ended, cancel := context.WithCancel(one.ctx)
	cancel()
	wants(t, "undeploy", one.parts.Undeploy(ended, "one"), context.Canceled)
	refused("still deployed")
	wants(t, "undeploy", one.parts.Undeploy(one.ctx, "one"), nil)

	a = two.deploy(app, store)
	gate := one.newGate()
	store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Hold(gate), Times: 1})
	two.commit(a, 3)
	two.check(gate.Await(two.ctx))
	wants(t, "undeploy", two.parts.Undeploy(two.ctx, "one"), partition.ErrNotClean)
	if n := one.commit(one.deploy(app, faulty), 3); n != 3 {
		t.Errorf("got number %d, want 3", n)
	}
	gate.Release()
	two.eventually("the end of the leaf", func() bool { return a.Status()[3].Abandoned == 0 })
}

// Of many AppParts that deploy over one store at the same time, one does.
func TestDeployOverAStoreConcurrently(t *testing.T) {
	const many = 8
	first := newHouse(t, partition.Options{})
	app := billing("one")
	store := first.newStore(app.Descriptor)
	answers := make(chan error, many)
	for range many {
		h := first.neighbour()
		go func() {
			_, err := h.parts.Deploy(h.ctx, app, store)
			answers <- err
		}()
	}
	won := 0
	for range many {
		err := soon(first, "an answer", answers)
		if err == nil {
			won++
			continue
		}
		wants(t, "deploy", err, partition.ErrStoreInUse)
	}
	if won != 1 {
		t.Errorf("%d have deployed, want 1", won)
	}
}
