package linear

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

// The application that clients use.
const (
	partitions = 2
	workspaces = 4
	kindShop   = messages.WSKind(1)
	seqInvoice = messages.SeqID(16)
	seqReceipt = messages.SeqID(17)
)

func shop(level messages.TrustLevel) messages.Descriptor {
	return messages.Descriptor{
		Application: "linear", Partitions: partitions, TrustLevel: level,
		Kinds: []messages.Kind{{ID: kindShop, Name: "shop", Sequences: []messages.Sequence{
			{ID: seqInvoice, Name: "Invoice", Initial: initial[seqInvoice]},
			{ID: seqReceipt, Name: "Receipt", Initial: initial[seqReceipt]},
		}}},
	}
}

// system is shared: a new actor system costs 2.5 ms and 3 MB.
var system = quiet.NewSystem()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// limit bounds what must not hang; it is far above what anything takes.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// disk is what survives when a store is closed. Each open returns a new handle.
type disk func(t testing.TB) storage.Store

func memoryDisk(t testing.TB, level messages.TrustLevel) disk {
	t.Helper()
	store, err := storagetest.NewMemory(shop(level))
	must(t, err)
	return func(testing.TB) storage.Store {
		store = store.Reopen()
		return store
	}
}

func boltDisk(t testing.TB, level messages.TrustLevel, o bolt.Options) disk {
	t.Helper()
	dir := t.TempDir()
	o.Create = true
	return func(t testing.TB) storage.Store {
		t.Helper()
		store, err := bolt.Open(limit(t), dir, shop(level), o)
		must(t, err)
		return store
	}
}

// world is an application that runs.
type world struct {
	store *storagetest.Faulty
	parts *partition.AppParts
	app   *partition.App
	// processors are command processors of both kinds.
	processors []*partition.CommandProcessor
}

func begin(t testing.TB, d disk, level messages.TrustLevel, s partition.Settings) *world {
	t.Helper()
	w := &world{
		store: storagetest.NewFaulty(d(t)),
		parts: partition.NewAppParts(system, partition.Options{RestartDelay: 2 * time.Millisecond}),
	}
	app, err := w.parts.Deploy(limit(t), partition.Application{WorkspaceZero: true, Descriptor: shop(level), Settings: s}, w.store)
	must(t, err)
	must(t, app.Ready(limit(t)))
	w.app = app
	for _, spawn := range []func() (*partition.CommandProcessor, error){
		func() (*partition.CommandProcessor, error) { return app.SpawnCommandProcessor(decide) },
		func() (*partition.CommandProcessor, error) { return app.SpawnAppendProcessor(drafted) },
	} {
		p, err := spawn()
		must(t, err)
		w.processors = append(w.processors, p)
	}
	return w
}

// undeploy ends the application. After faults it may not be clean, and need not.
func (w *world) undeploy(t testing.TB) {
	t.Helper()
	if err := w.parts.Close(limit(t)); err != nil && !errors.Is(err, partition.ErrNotClean) {
		t.Errorf("undeploy: %v", err)
	}
}

func (w *world) sequencer(ws messages.WSID) *partition.Sequencer {
	s, err := w.app.SequencerOf(ws)
	if err != nil {
		panic(err) // the clients use partitions that there are
	}
	return s
}
