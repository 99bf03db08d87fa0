package partition_test

import (
	"context"
	"errors"
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
