package partition_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

func TestAppPartsDeployAndUndeploy(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	store := h.newStore(app.Descriptor)
	for round := range messages.Number(3) {
		a := h.deploy(app, store)
		for ws := range messages.WSID(8) {
			if n := h.commit(a, ws); n != round+1 {
				t.Errorf("round %d, workspace %d: got number %d", round, ws, n)
			}
		}
		for i, s := range a.Status() {
			if s.Partition != messages.PartitionID(i) || s.State != messages.StateNormal || s.Replayed != 0 || s.Epoch != messages.Epoch(round+1) {
				t.Errorf("got %+v", s)
			}
		}
		h.check(h.parts.Undeploy(h.ctx, "one"))
		for _, s := range a.Status() {
			if s.State != messages.StateTerminated || !s.Clean || s.Abandoned != 0 {
				t.Errorf("got %+v", s)
			}
		}
	}
}

func TestAppPartsSideBySide(t *testing.T) {
	h := newHouse(t, partition.Options{})
	apps := make(map[string]*partition.App)
	for _, name := range []string{"c", "a", "b"} {
		app := billing(name)
		apps[name] = h.deploy(app, h.newStore(app.Descriptor))
	}
	if got := h.parts.Apps(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %v", got)
	}
	for name, a := range apps {
		got, err := h.parts.App(name)
		h.check(err)
		if got != a || a.Name() != name || a.Partitions() != 4 {
			t.Errorf("got %v", got)
		}
		if n := h.commit(a, 5); n != 1 {
			t.Errorf("%s: got number %d", name, n)
		}
	}
	h.check(h.parts.Undeploy(h.ctx, "b"))
	if n := h.commit(apps["a"], 5); n != 2 {
		t.Errorf("got number %d", n)
	}
}

func TestAppPartsUnknown(t *testing.T) {
	h := newHouse(t, partition.Options{})
	_, err := h.parts.App("nobody")
	wants(t, "App", err, partition.ErrUnknownApplication)
	wants(t, "Undeploy", h.parts.Undeploy(h.ctx, "nobody"), partition.ErrUnknownApplication)
	app := billing("one")
	a := h.deploy(app, h.newStore(app.Descriptor))
	for id, want := range map[messages.PartitionID]error{0: nil, 3: nil, 4: partition.ErrUnknownPartition, 1<<32 - 1: partition.ErrUnknownPartition} {
		s, err := a.Sequencer(id)
		wants(t, "Sequencer", err, want)
		if want == nil && s.Partition() != id {
			t.Errorf("got partition %d, want %d", s.Partition(), id)
		}
	}
	for ws := range messages.WSID(10) {
		s, err := a.SequencerOf(ws)
		h.check(err)
		if s.Partition() != messages.PartitionID(ws%4) || a.PartitionOf(ws) != s.Partition() {
			t.Errorf("workspace %d: got partition %d", ws, s.Partition())
		}
	}
}

// Everything that Deploy refuses; nothing is left of it.
func TestAppPartsDeployRefused(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	store := h.newStore(app.Descriptor)
	h.deploy(app, store)
	_, err := h.parts.Deploy(h.ctx, app, h.newStore(app.Descriptor))
	wants(t, "twice", err, partition.ErrDeployed)
	other := billing("two")
	for name, change := range map[string]func(*messages.Descriptor){
		"name":        func(d *messages.Descriptor) { d.Application = "three" },
		"partitions":  func(d *messages.Descriptor) { d.Partitions = 5 },
		"trust level": func(d *messages.Descriptor) { d.TrustLevel = messages.TrustAll },
		"initial":     func(d *messages.Descriptor) { d.Kinds[0].Sequences[0].Initial = 2 },
		"kind":        func(d *messages.Descriptor) { d.Kinds = []messages.Kind{{ID: 9, Name: "nine"}} },
	} {
		stored := other.Normalized()
		change(&stored)
		_, err := h.parts.Deploy(h.ctx, other, h.newStore(stored))
		wants(t, "store of another "+name, err, messages.ErrDescriptor)
	}
	ended, cancel := context.WithCancel(h.ctx)
	cancel()
	_, err = h.parts.Deploy(ended, other, h.newStore(other.Descriptor))
	wants(t, "context", err, context.Canceled)
	if got := h.parts.Apps(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("got %v", got)
	}
	h.deploy(other, h.newStore(other.Descriptor))
}

// renamed is a store under another application's name.
type renamed struct {
	*storagetest.Faulty
	name atomic.Pointer[string]
}

func (r *renamed) Descriptor() messages.Descriptor {
	d := r.Faulty.Descriptor()
	d.Application = *r.name.Load()
	return d
}

func TestAppPartsStoreInUse(t *testing.T) {
	h := newHouse(t, partition.Options{})
	store := &renamed{Faulty: h.newStore(billing("one").Descriptor)}
	one, two := "one", "two"
	store.name.Store(&one)
	h.deploy(billing("one"), store)
	store.name.Store(&two)
	_, err := h.parts.Deploy(h.ctx, billing("two"), store)
	wants(t, "deploy", err, partition.ErrStoreInUse)
	store.name.Store(&one)
	h.check(h.parts.Undeploy(h.ctx, "one"))
	h.deploy(billing("one"), store)
}

// The order of kinds and sequences means nothing, nor does an empty list.
func TestAppPartsSameDescriptor(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	app.Kinds = []messages.Kind{
		{ID: shop, Name: "shop", Sequences: []messages.Sequence{{ID: invoices, Name: "Invoice", Initial: 1}, {ID: 17, Name: "Receipt", Initial: 5}}},
		{ID: 2, Name: "bare", Sequences: []messages.Sequence{}},
	}
	stored := app.Descriptor
	stored.Kinds = []messages.Kind{
		{ID: 2, Name: "bare"},
		{ID: shop, Name: "shop", Sequences: []messages.Sequence{{ID: 17, Name: "Receipt", Initial: 5}, {ID: invoices, Name: "Invoice", Initial: 1}}},
	}
	h.commit(h.deploy(app, h.newStore(stored)), 3)
}

// Each wrong setting is named in the error.
func TestAppPartsBadSettings(t *testing.T) {
	h := newHouse(t, partition.Options{})
	store := h.newStore(billing("one").Descriptor)
	for name, change := range map[string]func(*partition.Application){
		"FlushThreshold":    func(a *partition.Application) { a.Settings.FlushThreshold = -1 },
		"BusyLimit":         func(a *partition.Application) { a.Settings.BusyLimit = 1 },
		"BusyEvents":        func(a *partition.Application) { a.Settings.BusyEvents = -1 },
		"GroupBytes":        func(a *partition.Application) { a.Settings.GroupBytes = -1 },
		"FlushInterval":     func(a *partition.Application) { a.Settings.FlushInterval = time.Microsecond },
		"RetryDelay":        func(a *partition.Application) { a.Settings.RetryDelay = -1 },
		"TransactionLimit":  func(a *partition.Application) { a.Settings.TransactionLimit = 1 },
		"StopLimit":         func(a *partition.Application) { a.Settings.StopLimit = -time.Hour },
		"CatchUpCheckpoint": func(a *partition.Application) { a.Settings.CatchUpCheckpoint = 1 },
		"CacheNumbers":      func(a *partition.Application) { a.CacheNumbers = -1 },
		"RequestLane":       func(a *partition.Application) { a.RequestLane = -5 },
		"RequestLaneBytes":  func(a *partition.Application) { a.RequestLaneBytes = -5 },
		"Actualizations":    func(a *partition.Application) { a.Actualizations = -1 },
	} {
		app := billing("one")
		change(&app)
		_, err := h.parts.Deploy(h.ctx, app, store)
		wants(t, name, err, messages.ErrSettings)
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s: the error does not name it: %v", name, err)
		}
	}
	bad := billing("")
	_, err := h.parts.Deploy(h.ctx, bad, store)
	wants(t, "no name", err, messages.ErrDescriptor)
	a := h.deploy(billing("one"), store)
	err = a.Reconfigure(h.ctx, partition.Settings{FlushInterval: 1})
	wants(t, "reconfigure", err, messages.ErrSettings)
	if !strings.Contains(err.Error(), "FlushInterval") {
		t.Errorf("the error does not name the setting: %v", err)
	}
}

// Settings change while an application runs, in every partition.
func TestAppReconfigure(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	app.Settings = partition.Settings{FlushInterval: time.Hour}
	store := h.newStore(app.Descriptor)
	a := h.deploy(app, store)
	h.check(a.Reconfigure(h.ctx, partition.Settings{FlushThreshold: 1}))
	for ws := range messages.WSID(4) {
		h.commit(a, ws)
	}
	h.eventually("four flushes", func() bool { return store.Calls(storagetest.OpFlush) == 4 })
	h.check(h.parts.Undeploy(h.ctx, "one"))
	wants(t, "reconfigure", a.Reconfigure(h.ctx, partition.Settings{}), partition.ErrStopped)
}

// Storage fails while an application is deployed: it is not ready until that heals.
func TestAppPartsDeployWhileStorageFails(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	app.Settings = partition.Settings{RetryDelay: 2 * time.Millisecond}
	store := h.newStore(app.Descriptor)
	injected := errors.New("injected")
	store.Plant(storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Fail(injected)})
	a, err := h.parts.Deploy(h.ctx, app, store)
	h.check(err)
	h.eventually("some tries", func() bool { return store.Calls(storagetest.OpTakeEpoch) > 12 })
	// One of them may have had all of these tries.
	h.eventually("an error of each", func() bool {
		return !slices.ContainsFunc(a.Status(), func(s messages.PartitionStatus) bool { return s.Err == nil })
	})
	for _, s := range a.Status() {
		if s.State != messages.StateInitializing || !errors.Is(s.Err, injected) {
			t.Errorf("got %+v", s)
		}
	}
	short, cancel := context.WithTimeout(h.ctx, 5*time.Millisecond)
	defer cancel()
	wants(t, "ready", a.Ready(short), context.DeadlineExceeded)
	ready := make(chan error, 1)
	go func() { ready <- a.Ready(h.ctx) }()
	store.Heal()
	wants(t, "ready", soon(h, "readiness", ready), nil)
	h.commit(a, 3)
}

// Ready tells which partitions have failed; the others serve.
func TestAppReadyWithAFailedPartition(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	store := h.newStore(app.Descriptor)
	damaged := &storage.DamagedError{Partition: 2, PLogOffset: 5, Cause: errors.New("bad sum")}
	store.Plant(storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Fail(damaged), Times: 1})
	a, err := h.parts.Deploy(h.ctx, app, store)
	h.check(err)
	err = a.Ready(h.ctx)
	wants(t, "ready", err, partition.ErrPartitionFailed)
	wants(t, "ready", err, storage.ErrDamaged)
	failed := 0
	for _, s := range a.Status() {
		if s.State == messages.StateFailed {
			failed++
			continue
		}
		h.commit(a, messages.WSID(s.Partition))
	}
	if failed != 1 {
		t.Errorf("%d partitions have failed, want 1", failed)
	}
	wants(t, "undeploy", h.parts.Undeploy(h.ctx, "one"), partition.ErrNotClean)
	h.commit(h.deploy(app, store), 2)
}

func TestAppReadyWhileUndeployed(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := hurried("one")
	store := h.newStore(app.Descriptor)
	gate := h.newGate()
	store.Plant(storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Hold(gate)})
	a, err := h.parts.Deploy(h.ctx, app, store)
	h.check(err)
	ready := make(chan error, 1)
	go func() { ready <- a.Ready(h.ctx) }()
	h.check(gate.Await(h.ctx))
	wants(t, "undeploy", h.parts.Undeploy(h.ctx, "one"), partition.ErrNotClean)
	wants(t, "ready", soon(h, "Ready", ready), partition.ErrStopped)
}

// Of many who deploy the same application at the same time, one does.
func TestAppPartsDeployConcurrently(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	store := h.newStore(app.Descriptor)
	var won atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := h.parts.Deploy(h.ctx, app, store); err == nil {
				won.Add(1)
			} else if !errors.Is(err, partition.ErrDeployed) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d have deployed it", won.Load())
	}
}

// After Close nothing is deployed and nothing can be.
func TestAppPartsClose(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	store := h.newStore(app.Descriptor)
	a := h.deploy(app, store)
	h.commit(a, 3)
	h.check(h.parts.Close(h.ctx))
	h.check(h.parts.Close(h.ctx))
	_, err := h.parts.Deploy(h.ctx, app, store)
	wants(t, "deploy", err, partition.ErrClosed)
	s, err := a.SequencerOf(3)
	h.check(err)
	_, err = s.Start(h.ctx, shop, 3)
	wants(t, "start", err, partition.ErrStopped)
	_, err = s.StartWaiting(h.ctx, shop, 3)
	wants(t, "start", err, partition.ErrStopped)
}

// counting observes how many messages of an actor's group were posted and handled.
type counting struct {
	mu              sync.Mutex
	posted, handled map[string]int
}

func (c *counting) Posted(k partitionKey, _ any) { c.count(c.posted, k) }
func (c *counting) Taken(partitionKey, any)      {}
func (c *counting) Handled(k partitionKey, _ any) {
	c.count(c.handled, k)
}

func (c *counting) count(m map[string]int, k partitionKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m[k.Group]++
}

// The observer is told about every message of every actor, leaves and command
// processors included.
func TestAppPartsObserver(t *testing.T) {
	c := &counting{posted: make(map[string]int), handled: make(map[string]int)}
	h := newHouse(t, partition.Options{Observer: c})
	app := billing("one")
	a := h.deploy(app, h.newStore(app.Descriptor))
	p, err := a.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { return nil })
	h.check(err)
	_, err = p.Execute(h.ctx, messages.Command{Workspace: 3, Kind: shop})
	h.check(err)
	h.check(h.parts.Undeploy(h.ctx, "one"))
	h.eventually("all to be handled", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, group := range []string{"partition", "flusher", "actualizer", "reader", "command-processor"} {
			if c.posted[group] == 0 || c.posted[group] != c.handled[group] {
				return false
			}
		}
		return true
	})
}
