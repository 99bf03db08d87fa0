package soak

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

// settings let partitions recover soon from what is done to them.
func (p *plan) settings() partition.Settings {
	return partition.Settings{RetryDelay: 50 * time.Millisecond, TransactionLimit: max(p.unit/2, 100*time.Millisecond), StopLimit: max(2*p.unit, 100*time.Millisecond)}
}

// process is what a process has open: a store, and an AppParts that serves it.
type process struct {
	store storage.Store
	// faulty is what lets the store suffer; nil if nothing stands between it and the
	// application.
	faulty *storagetest.Faulty
	parts  *partition.AppParts
}

func startProcess(t *testing.T, r *run, dir string) *process {
	t.Helper()
	var opened *bolt.Store
	must(t, bounded(func(ctx context.Context) (err error) {
		opened, err = bolt.Open(ctx, dir, shop, bolt.Options{Create: true})
		return err
	}))
	r.count(starts, 1)
	p := &process{store: opened, parts: partition.NewAppParts(system, partition.Options{RestartDelay: 20 * time.Millisecond})}
	switch r.random.IntN(3) {
	case 0: // as users have it
	case 1:
		p.faulty = storagetest.NewFaulty(opened)
		p.store = subscribing(t, p.faulty)
	case 2:
		p.faulty = storagetest.NewFaulty(opened)
		p.store = submitting{storagetest.NewSubmitting(p.faulty), subscribing(t, p.faulty)}
	}
	return p
}

func subscribing(t *testing.T, f *storagetest.Faulty) storagetest.Subscribing {
	t.Helper()
	s, err := storagetest.NewSubscribing(f)
	must(t, err)
	return s
}

// submitting is a Submitting that keeps subscriptions.
type submitting struct {
	storagetest.Submitting
	keeper
}

// keeper has another name than its method Subscriptions, which a field of that name would hide.
type keeper = storage.Subscriptions

// end closes everything. After faults that may not be clean, and need not be.
func (p *process) end(t *testing.T, r *run) {
	t.Helper()
	r.undeployed(t, bounded(p.parts.Close))
	must(t, bounded(p.store.Close))
	if p.faulty == nil {
		return
	}
	for op := range storagetest.OpDeleteSubscription {
		r.count(faults, p.faulty.Injected(op))
	}
}

// deployment is a time in which the application is deployed.
type deployment struct {
	*process
	app                 *partition.App
	decisive, appending []*partition.CommandProcessor
	// enough says that the clients are to stop.
	enough atomic.Bool
	// fatal says that the next command is to be one that its handler panics with.
	fatal atomic.Bool
	// hanging is where a call hangs when the deployment ends, if one does.
	hanging *storagetest.Gate
}

func (p *process) deploy(t *testing.T, r *run) *deployment {
	t.Helper()
	var app *partition.App
	must(t, bounded(func(ctx context.Context) (err error) {
		if app, err = p.parts.Deploy(ctx, partition.Application{WorkspaceZero: true, Descriptor: shop, Settings: r.plan.settings()}, p.store); err != nil {
			return err
		}
		return app.Ready(ctx)
	}))
	r.count(deployments, 1)
	d := &deployment{process: p, app: app, hanging: storagetest.NewGate()}
	for range processors {
		one, err := app.SpawnCommandProcessor(decide)
		must(t, err)
		d.decisive = append(d.decisive, one)
	}
	for range drafters {
		one, err := app.SpawnAppendProcessor(drafted)
		must(t, err)
		d.appending = append(d.appending, one)
	}
	return d
}

// start lets all clients work; wait returns when they have stopped.
func (d *deployment) start(ctx context.Context, clients []*client) (wait func()) {
	var working sync.WaitGroup
	next := 0
	begin := func(count int, once func(c *client, i int) func(context.Context) error) {
		for i := range count {
			c := clients[next]
			next++
			do := once(c, i)
			working.Go(func() { c.work(ctx, d, do) })
		}
	}
	begin(appenders, func(c *client, _ int) func(context.Context) error {
		return func(ctx context.Context) error { return c.append(ctx, d) }
	})
	begin(drafters, func(c *client, i int) func(context.Context) error {
		return func(ctx context.Context) error { return c.command(ctx, d, d.appending[i], &c.run.appends) }
	})
	begin(processors, func(c *client, i int) func(context.Context) error {
		return func(ctx context.Context) error { return c.command(ctx, d, d.decisive[i], &c.run.transactions) }
	})
	begin(transactions, func(c *client, _ int) func(context.Context) error {
		return func(ctx context.Context) error { return c.transaction(ctx, d) }
	})
	begin(readers, func(c *client, _ int) func(context.Context) error {
		return func(ctx context.Context) error { return c.read(ctx, d) }
	})
	return working.Wait
}

// ending is how a deployment ends.
type ending int

const (
	// stopping: the clients stop first.
	stopping ending = iota
	// undeploying: the application is undeployed under them.
	undeploying
	// hanging: so it is, and an append hangs meanwhile.
	hanging
	// crashing: the store is closed under them.
	crashing
	endings
)

// end ends a deployment whose faults are healed. It reports whether the process can go on.
func (d *deployment) end(t *testing.T, r *run, how ending) (usable bool) {
	t.Helper()
	switch how {
	case stopping, endings:
		d.enough.Store(true)
		return true // it is undeployed when they have stopped
	case hanging:
		if d.faulty != nil {
			d.hang(r)
			defer d.faulty.Heal()
		}
		r.undeployed(t, d.undeploy())
	case undeploying:
		r.undeployed(t, d.undeploy())
	case crashing:
		must(t, bounded(d.store.Close))
		return false
	}
	return true
}

// hang lets an append hang until the deployment has ended.
func (d *deployment) hang(r *run) {
	d.faulty.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(d.hanging), Times: 1})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if d.hanging.Await(ctx) == nil {
		r.count(hangs, 1)
	}
}

func (d *deployment) undeploy() error {
	return bounded(func(ctx context.Context) error { return d.parts.Undeploy(ctx, shop.Application) })
}

// undeployed checks how an undeployment ended.
func (r *run) undeployed(t *testing.T, err error) {
	t.Helper()
	switch {
	case errors.Is(err, partition.ErrNotClean):
		r.count(unclean, 1)
	case err != nil:
		t.Errorf("undeploy: %v", err)
	}
}

// sound fails the test unless all partitions recover from the faults, which have ended.
func (d *deployment) sound(t *testing.T) {
	t.Helper()
	if err := bounded(d.app.Ready); err != nil {
		t.Errorf("the faults have ended, and partitions do not go on: %v", err)
	}
	for _, s := range d.app.Status() {
		if s.State == messages.StateFailed {
			t.Errorf("partition %d has failed: %v", s.Partition, s.Err)
		}
	}
}
