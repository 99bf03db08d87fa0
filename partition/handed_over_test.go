package partition_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/partition/partitiontest"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// wantNamed fails the test unless the error is what is wanted and names what is wrong.
func wantNamed(t *testing.T, got, want error, name string) {
	t.Helper()
	wants(t, name, got, want)
	if !strings.Contains(got.Error(), name) {
		t.Errorf("got %v, want that it names %q", got, name)
	}
}

// What is nil is refused where it is handed over.
func TestNothingHandedOver(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	store := h.newStore(app.Descriptor)
	_, err := partition.NewAppParts(nil, partition.Options{}).Deploy(h.ctx, app, store)
	wantNamed(t, err, messages.ErrSettings, "actor system")
	for _, none := range []storage.Store{nil, (*bolt.Store)(nil)} {
		_, err = h.parts.Deploy(h.ctx, app, none)
		wantNamed(t, err, messages.ErrSettings, "store: got none")
	}
	a := h.deploy(app, store)
	_, err = a.SpawnCommandProcessor(nil)
	wantNamed(t, err, messages.ErrSettings, "handler")
	_, err = a.SpawnAppendProcessor(nil)
	wantNamed(t, err, messages.ErrSettings, "drafter")
	_, err = a.Subscribe(h.ctx, partition.SubscriptionConfig{Name: "s"})
	wantNamed(t, err, messages.ErrSettings, "Handler")
}

// zero opens a transaction in workspace 0 and commits an event there, and appends another one, by all ways.
func zero(h *house, a *partition.App) (errs []error) {
	s, err := a.SequencerOf(0)
	h.check(err)
	tx, err := s.Start(h.ctx, shop, 0)
	if err == nil {
		err = tx.Commit(h.ctx, nil)
	}
	errs = append(errs, err)
	_, err = s.Append(h.ctx, partition.AppendTo{Kind: shop}, partition.Draft{})
	errs = append(errs, err)
	p, err := a.SpawnAppendProcessor(func(context.Context, *partition.DraftContext) error { return nil })
	h.check(err)
	_, err = p.Execute(h.ctx, messages.Command{Kind: shop})
	return append(errs, err)
}

// An id that was forgotten is 0: it is no workspace, unless the application says so, or the store has it already.
func TestWorkspaceZero(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	app.WorkspaceZero = false
	store := h.newStore(app.Descriptor)
	a := h.deploy(app, store)
	for _, err := range zero(h, a) {
		wantNamed(t, err, messages.ErrWorkspaceZero, "workspace 0")
	}
	if n := h.commit(a, 4); n != 1 {
		t.Errorf("the partition goes on: got number %d, want 1", n)
	}
	h.check(h.parts.Undeploy(h.ctx, "one"))
	app.WorkspaceZero = true
	a = h.deploy(app, store)
	for _, err := range zero(h, a) {
		h.check(err)
	}
	h.check(h.parts.Undeploy(h.ctx, "one"))
	app.WorkspaceZero = false
	for _, err := range zero(h, h.deploy(app, store)) {
		h.check(err)
	}
}

// A body above the limit is refused by name, whichever way it comes, and the partition goes on.
func TestBodyAboveTheLimit(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	store, err := bolt.Open(h.ctx, t.TempDir(), app.Descriptor, bolt.Options{Create: true})
	h.check(err)
	defer func() { h.check(store.Close(h.ctx)) }()
	defer func() { h.check(h.parts.Close(h.ctx)) }()
	a := h.deploy(app, store)
	s, err := a.SequencerOf(4)
	h.check(err)
	body := make([]byte, messages.MaxEventBytes+1)
	tx, err := s.Start(h.ctx, shop, 4)
	h.check(err)
	wantNamed(t, tx.Commit(h.ctx, body), storage.ErrInvalidEvent, "too large")
	_, err = s.Append(h.ctx, partition.AppendTo{Workspace: 4, Kind: shop}, partition.Draft{Body: body})
	wantNamed(t, err, messages.ErrTooLarge, "workspace 4")
	p, err := a.SpawnAppendProcessor(func(context.Context, *partition.DraftContext) error { return nil })
	h.check(err)
	_, err = p.Execute(h.ctx, messages.Command{Workspace: 4, Kind: shop, Body: body})
	wantNamed(t, err, messages.ErrTooLarge, "workspace 4")
	if n := h.commit(a, 4); n != 1 {
		t.Errorf("got number %d, want 1", n)
	}
}

// A store that is open under another descriptor is refused with the difference, and nothing else.
func TestOtherDescriptor(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	less := app.Normalized()
	less.Kinds[0].Sequences = less.Kinds[0].Sequences[:len(less.Kinds[0].Sequences)-1]
	_, err := h.parts.Deploy(h.ctx, app, h.newStore(less))
	wantNamed(t, err, messages.ErrDescriptor, "the store has none, the application has it")
	if text := err.Error(); len(text) > 200 || strings.Contains(text, "{") {
		t.Errorf("got %q, want the difference only", text)
	}
}

// The status is true when it is asked for: it has each event that was acknowledged, flushed or not.
func TestStatusOfNow(t *testing.T) {
	application := partition.Application{Descriptor: descriptor}
	application.Partitions = 1
	application.Settings.FlushThreshold = math.MaxInt32
	app := partitiontest.Deploy(t, application, partitiontest.Options{})
	for i := range messages.PLogOffset(5) {
		app.Append(partition.AppendTo{Workspace: 4, Kind: shop}, partition.Draft{})
		if s := app.Status()[0]; s.Last != i+1 || s.Unflushed() != uint64(i+1) {
			t.Errorf("got last %d, %d unflushed, want %d", s.Last, s.Unflushed(), i+1)
		}
	}
	app.Restart()
	if s := app.Status()[0]; s.Last != 5 || s.Checkpoint != 6 || s.Unflushed() != 0 {
		t.Errorf("got last %d, checkpoint %d, %d unflushed, want 5, 6 and none", s.Last, s.Checkpoint, s.Unflushed())
	}
}

// Whoever has no time for a stop is told so, and nobody is blamed.
func TestStopWithoutTime(t *testing.T) {
	h := newHouse(t, partition.Options{})
	a := h.deploy(billing("one"), h.newStore(billing("one").Descriptor))
	_, err := a.SpawnAppendProcessor(func(context.Context, *partition.DraftContext) error { return nil })
	h.check(err)
	ended, cancel := context.WithCancel(h.ctx)
	cancel()
	err = h.parts.Close(ended)
	wants(t, "close", err, context.Canceled)
	if text := err.Error(); text != context.Canceled.Error() {
		t.Errorf("got %q, want only that the context has ended", text)
	}
	h.check(h.parts.Close(h.ctx))
}
