package partition_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shared is the actor system of all tests.
var shared = quiet.NewSystem()

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// house is an AppParts, and the stores that were deployed into it.
type house struct {
	t      *testing.T
	ctx    context.Context
	parts  *partition.AppParts
	stores []*storagetest.Memory
	gates  []*storagetest.Gate
	faults []*storagetest.Faulty
}

// newHouse returns an AppParts that is closed at the end of the test. Then every
// store is verified, and no goroutine may be left.
func newHouse(t *testing.T, o partition.Options) *house {
	t.Helper()
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	h := &house{t: t, ctx: ctx, parts: partition.NewAppParts(shared, o)}
	t.Cleanup(func() {
		for _, f := range h.faults {
			f.Heal()
		}
		for _, g := range h.gates {
			g.Release()
		}
		if err := h.parts.Close(h.ctx); err != nil && !errors.Is(err, partition.ErrNotClean) {
			t.Errorf("close: %v", err)
		}
		cancel()
		for _, m := range h.stores {
			storagetest.Verify(t, m.Reopen())
		}
		goleak.VerifyNone(t, before)
	})
	return h
}

// billing returns the application of the examples under another name.
func billing(name string) partition.Application {
	d := descriptor
	d.Application = name
	return partition.Application{Descriptor: d, WorkspaceZero: true}
}

func (h *house) newStore(d messages.Descriptor) *storagetest.Faulty {
	h.t.Helper()
	memory, err := storagetest.NewMemory(d)
	h.check(err)
	h.stores = append(h.stores, memory)
	f := storagetest.NewFaulty(memory)
	h.faults = append(h.faults, f)
	return f
}

func (h *house) newGate() *storagetest.Gate {
	g := storagetest.NewGate()
	h.gates = append(h.gates, g)
	return g
}

// deploy deploys an application and waits until it is ready.
func (h *house) deploy(app partition.Application, store storage.Store) *partition.App {
	h.t.Helper()
	a, err := h.parts.Deploy(h.ctx, app, store)
	h.check(err)
	h.check(a.Ready(h.ctx))
	return a
}

func (h *house) check(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// wants fails the test unless the error is what is wanted; nil wants none.
func wants(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || (want == nil && got != nil) {
		t.Fatalf("%s: got error %v, want %v", what, got, want)
	}
}

// commit writes one event with an invoice and returns its number.
func (h *house) commit(a *partition.App, ws messages.WSID) messages.Number {
	h.t.Helper()
	s, err := a.SequencerOf(ws)
	h.check(err)
	tx, err := s.Start(h.ctx, shop, ws)
	h.check(err)
	n, err := tx.Next(h.ctx, invoices)
	h.check(err)
	h.check(tx.Commit(h.ctx, nil))
	return n
}

// soon waits for a value.
func soon[T any](h *house, what string, c <-chan T) T {
	h.t.Helper()
	select {
	case v := <-c:
		return v
	case <-h.ctx.Done():
		h.t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// eventually waits until a condition holds.
func (h *house) eventually(what string, holds func() bool) {
	h.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-h.ctx.Done():
			h.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// deaf is a store whose calls do not end when their context does.
type deaf struct{ *storagetest.Faulty }

func (d deaf) TakeEpoch(ctx context.Context, p messages.PartitionID) (storage.Register, error) {
	return d.Faulty.TakeEpoch(context.WithoutCancel(ctx), p)
}

func (d deaf) Flush(ctx context.Context, f storage.Flush) error {
	return d.Faulty.Flush(context.WithoutCancel(ctx), f)
}
