package partitiontest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// system is shared by all applications under test: a new one costs 2.5 ms and 3 MB, and needs no shutting down.
var system = sync.OnceValue(quiet.NewSystem)

// Options say how an application is tested. The zero value is fine.
type Options struct {
	// Now is what App.Clock shows first. Default: 1 January 2026, 12:00 UTC.
	Now time.Time
	// Start does what the program does when it starts: it subscribes, and makes the services that are tested. It is
	// called when the application is ready, at first and after each Restart. Its context ends when the application
	// stops or crashes, as the program would. Default: nothing.
	Start func(ctx context.Context, app *partition.App) error
	// Patience is how long a test waits for what must happen, of the machine's time. Then it fails. Default: 30 s.
	Patience time.Duration
	// Runtime is what the application is deployed with. Its Clock, if it is set, is used instead of App.Clock, which
	// is nil then.
	Runtime partition.Options
	// Over returns what the application is deployed over, made of App.Store. Default: a [storagetest.Subscribing].
	Over func(*storagetest.Faulty) (storage.Store, error)
}

// App is a deployed application over a store in memory. Its methods fail the test instead of returning an error. They
// belong to the test's goroutine; what is embedded is safe for concurrent use.
type App struct {
	// App is the application as it is deployed now: another one after each Restart.
	*partition.App
	// Clock is the application's clock: it stands until the test moves it.
	Clock *actorstest.FakeClock
	// Store is the store, into which any fault can be planted. After a Crash or a Restart it is another one with the
	// same contents and no faults.
	Store *storagetest.Faulty
	// System is the actor system that the application lives in: for actors that speak with it.
	System *actor.ActorSystem

	t           testing.TB
	application partition.Application
	options     Options
	parts       *partition.AppParts
	// memory is what is in the store.
	memory *crashing
	gates  []*storagetest.Gate
	// running says that something is deployed, and end ends the context of its program.
	running bool
	end     context.CancelFunc
}

// Deploy deploys an application over a new store in memory, and waits until it is ready. When the test ends the
// application is undeployed, which must be clean, and every invariant of the store is checked.
//
// Two settings have other defaults, as the test moves the clock: ClockJump allows any jump ahead, and StopLimit is an
// hour.
func Deploy(t testing.TB, application partition.Application, o Options) *App {
	t.Helper()
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	if o.Over == nil {
		o.Over = func(f *storagetest.Faulty) (storage.Store, error) { return storagetest.NewSubscribing(f) }
	}
	a := &App{System: system(), t: t, application: application, options: o}
	if o.Runtime.Clock == nil {
		if o.Now.IsZero() {
			o.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		}
		a.Clock = actorstest.NewFakeClock(o.Now)
		a.options.Runtime.Clock = a.Clock
	}
	s := &a.application.Settings
	s.ClockJump = cmp.Or(s.ClockJump, math.MaxInt64)
	s.StopLimit = cmp.Or(s.StopLimit, time.Hour)
	a.check("descriptor", application.CheckNames(nil)) // as a store that is made checks them
	memory, err := storagetest.NewMemory(application.Descriptor)
	a.check("store", err)
	a.open(memory)
	t.Cleanup(a.close)
	a.start()
	return a
}

// Restart undeploys the application and deploys it again over the same store; after a Crash it only does the second.
// The first must be clean: nothing is replayed at the start. All faults are healed before, and whoever is held is
// released.
func (a *App) Restart() {
	a.t.Helper()
	a.endCrash()
	if a.running {
		a.Heal()
		a.check("stop", a.stop())
		a.open(a.memory.Reopen())
	}
	a.start()
}

// Crash ends the application as if its process had been killed; Restart starts it again. What was acknowledged is in
// the store then, and nothing else, except for writes that are under way in this moment: each of them is there or not.
// Whoever wants to choose uses [App.CrashInNextWrite]. All faults are healed, and whoever is held is released, and
// writes nothing.
func (a *App) Crash() {
	a.t.Helper()
	// What still runs gets nothing into the store any more.
	memory := a.memory.Reopen()
	a.Heal()
	if a.running {
		a.abandon()
	}
	a.open(memory)
}

// endCrash does what is left to do after a crash in the middle of a write.
func (a *App) endCrash() {
	a.t.Helper()
	if a.memory.crashed() {
		a.Crash()
	}
}

// abandon ends what runs over a store that takes nothing any more. Handlers get as long as it takes to see that their
// context has ended.
func (a *App) abandon() {
	a.t.Helper()
	ctx, done := a.limit()
	defer done()
	settings := a.application.Settings
	settings.StopLimit = 100 * time.Millisecond
	_ = a.Reconfigure(ctx, settings) // a partition that has failed may refuse it
	if err := a.stop(); !errors.Is(err, partition.ErrNotClean) {
		a.check("crash", err)
	}
}

// stop undeploys.
func (a *App) stop() error {
	a.running = false
	a.end()
	ctx, done := a.limit()
	defer done()
	stopped := make(chan error, 1)
	go func() { stopped <- a.parts.Close(ctx) }()
	return a.passTime(stopped)
}

// passTime lets time pass for those who wait for it to stop, like for another try of what has failed. The clock then
// shows what it would have shown without.
func (a *App) passTime(stopped <-chan error) error {
	if a.Clock == nil {
		return <-stopped
	}
	const step = 100 * time.Millisecond
	passed := time.Duration(0)
	defer func() { a.Clock.Set(a.Clock.Now().Add(-passed)) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-stopped:
			return err
		case <-tick.C:
			a.Clock.Advance(step)
			passed += step
		}
	}
}

// close is the end of the test.
func (a *App) close() {
	a.t.Helper()
	a.endCrash()
	a.Heal()
	if a.running {
		if err := a.stop(); err != nil {
			a.t.Errorf("stop: %v", err)
			a.abandon()
		}
	}
	storagetest.Verify(a.t, a.memory.Reopen())
}

// open makes a store of a handle.
func (a *App) open(memory *storagetest.Memory) {
	a.memory = &crashing{Memory: memory}
	a.Store = storagetest.NewFaulty(a.memory)
}

// start deploys over the store and lets the program start.
func (a *App) start() {
	a.t.Helper()
	store, err := a.options.Over(a.Store)
	a.check("store", err)
	ctx, done := a.limit()
	defer done()
	a.parts = partition.NewAppParts(a.System, a.options.Runtime)
	var life context.Context
	life, a.end = context.WithCancel(context.Background())
	a.running = true
	a.App, err = a.parts.Deploy(ctx, a.application, store)
	a.check("deploy", err)
	a.check("ready", a.Ready(ctx))
	if a.options.Start != nil {
		a.check("start", a.options.Start(life, a.App))
	}
}

// limit returns a context that ends when patience does. It has no deadline: that would be by the clock that the test
// moves.
func (a *App) limit() (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	timer := time.AfterFunc(a.options.Patience, func() { cancel(fmt.Errorf("%w for %v", errPatience, a.options.Patience)) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// check fails the test if there is an error.
func (a *App) check(what string, err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatalf("%s: %v", what, err)
	}
}
