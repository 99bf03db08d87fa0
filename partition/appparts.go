package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// AppParts deploys applications into an actor system. It is safe for concurrent
// use.
type AppParts struct {
	system     *actor.ActorSystem
	options    Options
	dispatcher *actors.Dispatcher
	ports      *actors.Ports
	// guardian is one for all: the actor system never forgets one.
	guardian actor.SupervisorStrategy

	mu     sync.Mutex
	closed bool
	apps   map[string]*App
	// deployments seeds the jitter of each deployment differently.
	deployments uint64
}

// NewAppParts returns an AppParts without applications. The actor system stays
// the caller's.
func NewAppParts(system *actor.ActorSystem, o Options) *AppParts {
	a := &AppParts{
		system:     system,
		options:    o.withDefaults(),
		dispatcher: actors.NewDispatcher(),
		ports:      actors.NewPorts(system),
		apps:       make(map[string]*App),
	}
	a.guardian = actors.NewGuardian(actors.RestartPolicy{
		MinDelay:  time.Millisecond,
		MaxDelay:  a.options.RestartDelay,
		Clock:     a.options.Clock,
		OnRestart: a.restarting,
	}, interrupted)
	return a
}

// interrupted answers the requester of the message that an actor failed on.
func interrupted(message any) (any, bool) {
	switch message.(type) {
	case *messages.Append, messages.CommandProcessorMessage:
		// It may have got as far as its write.
		return &messages.Refused{Err: fmt.Errorf("%w: %w", messages.ErrOutcomeUnknown, messages.ErrInterrupted)}, true
	case messages.PartitionMessage, messages.LaneMessage:
		return &messages.Refused{Err: messages.ErrInterrupted}, true
	}
	return nil, false
}

func (a *AppParts) restarting(child *actor.PID, reason any, failures int, delay time.Duration) {
	a.options.Logger.Error("actor panicked and is restarted", zap.String("actor", child.Id),
		zap.Any("reason", reason), zap.Int("failures", failures), zap.Duration("delay", delay))
	if p := a.find(child); p != nil {
		p.Interrupted(reason)
	}
}

// find returns the partition at an address, nil if it is none of a deployed
// application.
func (a *AppParts) find(pid *actor.PID) *actors.Partition {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, app := range a.apps {
		for _, p := range app.partitions {
			if p.PID().Equal(pid) {
				return p
			}
		}
	}
	return nil
}

// Deploy starts an application's partitions over a store and returns when they
// are spawned; App.Ready waits until they take transactions. The store must hold
// this application and stays the caller's: close it after Undeploy. No other deployment
// can have it until then.
//
// It returns ErrDescriptor or ErrSettings of package messages if something in the
// application is wrong or the store holds another one, ErrDeployed, ErrStoreInUse,
// ErrForeign of package storage if a subscription is of another log than the store's, ErrClosed.
func (a *AppParts) Deploy(ctx context.Context, app Application, store storage.Store) (*App, error) {
	app = app.WithDefaults()
	if err := app.Validate(); err != nil {
		return nil, err
	}
	stored := store.Descriptor()
	if err := cmp.Or(app.Extends(&stored), stored.Extends(&app.Descriptor)); err != nil {
		return nil, fmt.Errorf("%w: got %+v, the store is open under %+v", err, app.Descriptor, stored)
	}
	// In a store of an earlier version sequences may go on further than the application says.
	app.Descriptor = stored
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.deployable(app.Descriptor.Application); err != nil {
		return nil, err
	}
	release, err := store.Claim(app.Descriptor.Application)
	if err != nil {
		return nil, err
	}
	a.deployments++
	deployed, err := spawnApp(a, app, store)
	if err != nil {
		release()
		return nil, err
	}
	deployed.release = release
	a.apps[app.Descriptor.Application] = deployed
	return deployed, nil
}

func (a *AppParts) deployable(name string) error {
	if a.closed {
		return ErrClosed
	}
	if _, twice := a.apps[name]; twice {
		return fmt.Errorf("%w: %q", ErrDeployed, name)
	}
	return nil
}

// App returns a deployed application, or ErrUnknownApplication.
func (a *AppParts) App(name string) (*App, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	app, ok := a.apps[name]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrUnknownApplication, name)
	}
	return app, nil
}

// Apps returns the names of the deployed applications in order.
func (a *AppParts) Apps() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	names := make([]string, 0, len(a.apps))
	for name := range a.apps {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Undeploy stops an application: subscriptions finish the batch under way, then command
// processors the command under way, then partitions the open transaction, the appends under
// way and the replay of their logs, and flush. Each of the three steps ends
// within the setting StopLimit and a second or two of grace, or when ctx ends. ErrNotClean says that something could not be
// flushed by then or hangs; the application is undeployed all the same, and the store may
// be deployed again: what a leaf that hangs still writes is refused then. When ctx ends
// first, its error is returned; the application takes no commands any more but is
// still deployed, and Undeploy may be called again.
func (a *AppParts) Undeploy(ctx context.Context, name string) error {
	app, err := a.App(name)
	if err != nil {
		return err
	}
	err = app.stop(ctx)
	if err != nil && (ctx.Err() != nil || !errors.Is(err, ErrNotClean)) {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.apps[name] == app {
		delete(a.apps, name)
		app.release()
	}
	return err
}

// Close undeploys everything and releases what AppParts holds in the actor system.
// It returns what Undeploy returned. After an error of ctx it may be called again.
func (a *AppParts) Close(ctx context.Context) error {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	var errs []error
	for _, name := range a.Apps() {
		err := a.Undeploy(ctx, name)
		errs = append(errs, err)
		if ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
	a.ports.Close()
	a.dispatcher.Close()
	return errors.Join(errs...)
}
