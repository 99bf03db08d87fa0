package tests

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/verify"
)

// The application that the tests deploy.
const (
	kindShop    messages.WSKind = 1
	seqInvoice  messages.SeqID  = 16
	seqReceipt  messages.SeqID  = 17
	seqDelivery messages.SeqID  = 18
)

// system is shared: a new actor system costs 2.5 ms and 3 MB.
var system = newSystem()

// newSystem returns a silent actor system, which needs no shutting down.
func newSystem() *actor.ActorSystem {
	return quiet.NewSystem()
}

func shop(partitions uint32) messages.Descriptor {
	return messages.Descriptor{
		Application: "shop",
		Partitions:  partitions,
		Kinds: []messages.Kind{{ID: kindShop, Name: "shop", Sequences: []messages.Sequence{
			{ID: seqInvoice, Name: "Invoice", Initial: 1},
			{ID: seqReceipt, Name: "Receipt", Initial: 1000},
			{ID: seqDelivery, Name: "Delivery", Initial: 1},
		}}},
	}
}

// limit bounds what must not hang; it is far above what anything takes.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openBolt(t testing.TB, dir string, d messages.Descriptor, o bolt.Options) *bolt.Store {
	t.Helper()
	o.Create = true
	return must(bolt.Open(limit(t), dir, d, o))(t)
}

// deployment is an application that runs over a store.
type deployment struct {
	parts *partition.AppParts
	app   *partition.App
	store storage.Store
}

// deploy starts an application and waits until it is ready.
func deploy(t testing.TB, a partition.Application, store storage.Store, o partition.Options) *deployment {
	t.Helper()
	parts := partition.NewAppParts(system, o)
	a.WorkspaceZero = true
	app := must(parts.Deploy(limit(t), a, store))(t)
	check(t, app.Ready(limit(t)))
	return &deployment{parts: parts, app: app, store: store}
}

// stop undeploys cleanly, checks the invariants and closes the store.
func (d *deployment) stop(t testing.TB) {
	t.Helper()
	check(t, d.parts.Close(limit(t)))
	verifyStore(t, d.store)
	check(t, d.store.Close(limit(t)))
}

// verifyStore fails the test unless every invariant holds. Nobody may flush meanwhile:
// a flush that is written and not published yet looks like numbers that are wrong.
func verifyStore(t testing.TB, store storage.Store) verify.Report {
	t.Helper()
	ctx := limit(t)
	report, err := verify.Run(ctx, store, verify.Options{})
	for errors.Is(err, verify.ErrNotAtRest) && ctx.Err() == nil {
		// A write or a new epoch of somebody who has gone was still under way.
		report, err = verify.Run(ctx, store, verify.Options{})
	}
	check(t, err)
	for _, fault := range report.Faults {
		t.Errorf("invariant broken: %v", fault)
	}
	return report
}

// commit runs one transaction with one number of each sequence given.
func commit(ctx context.Context, app *partition.App, ws messages.WSID, seqs ...messages.SeqID) (*partition.Transaction, error) {
	sequencer, err := app.SequencerOf(ws)
	if err != nil {
		return nil, err
	}
	tx, err := sequencer.StartWaiting(ctx, kindShop, ws)
	if err != nil {
		return nil, err
	}
	for _, seq := range seqs {
		if _, err := tx.Next(ctx, seq); err != nil {
			return nil, err
		}
	}
	return tx, tx.Commit(ctx, []byte("body"))
}
