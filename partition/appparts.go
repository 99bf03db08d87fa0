package partition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// AppParts deploys applications into an actor system. It is safe for concurrent
// use.
type AppParts struct {
	system     *actor.ActorSystem
	options    Options
	generator  atomic.Pointer[ids.TraceGenerator]
	dispatcher *actors.Dispatcher
	ports      *actors.Ports
	// guardians are by the groups that have a policy of their own; all others share the one of "". They are few: the actor
	// system never forgets one.
	guardians map[string]actor.SupervisorStrategy

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
	a.generator.Store(o.Traces)
	a.guardians = map[string]actor.SupervisorStrategy{"": a.newGuardian("")}
	for group := range o.Restarts {
		a.guardians[group] = a.newGuardian(group)
	}
	return a
}

// SetTraces gives trace ids from now on as [Options].Traces does, also to applications that are deployed; with nil nothing
// gives new ones. It is safe for concurrent use.
func (a *AppParts) SetTraces(g *ids.TraceGenerator) { a.generator.Store(g) }

func (a *AppParts) traces() actors.Traces {
	return actors.Traces{Generator: &a.generator, Tracer: a.options.Tracer}
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

// loggerOf returns the logger of an application's actors of a group: package logs knows them by its name.
func (a *AppParts) loggerOf(application, group string) *zap.Logger {
	return a.options.Logger.Named(application).Named(group)
}

// Deploy starts an application's partitions over a store and returns when they
// are spawned; App.Ready waits until they take transactions. The store must hold
// this application, perhaps with more kinds and sequences, and stays the caller's: close
// it after Undeploy. No other deployment can have it until then.
//
// It returns ErrDescriptor or ErrSettings of package messages if something in the
// application is wrong or the store holds another one, ErrDeployed, ErrStoreInUse,
// ErrForeign of package storage if a subscription is of another log than the store's, ErrClosed.
func (a *AppParts) Deploy(ctx context.Context, app Application, store storage.Store) (*App, error) {
	app = app.WithDefaults()
	if err := app.Validate(); err != nil {
		return nil, err
	}
	if err := a.given(store); err != nil {
		return nil, err
	}
	stored := store.Descriptor()
	if err := stored.Covers(&app.Descriptor); err != nil {
		return nil, err
	}
	// The store may have kinds that the application does not know. In one of an earlier version sequences may go on further
	// than it says.
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

// given returns ErrSettings if what a deployment rests on was not given. A store whose opening has failed is a nil pointer
// in the interface.
func (a *AppParts) given(store storage.Store) error {
	switch v := reflect.ValueOf(store); {
	case a.system == nil:
		return fmt.Errorf("%w: actor system: NewAppParts got none", messages.ErrSettings)
	case !v.IsValid(), v.Kind() == reflect.Pointer && v.IsNil():
		return fmt.Errorf("%w: store: got none", messages.ErrSettings)
	}
	return nil
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
// processors, those of groups too, the command under way, then partitions the open transaction, the appends under
// way and the replay of their logs, and flush. Each of the three steps ends
// within the setting StopLimit and a second or two of grace, or when ctx ends. ErrNotClean says that something could not be
// flushed by then or hangs; the application is undeployed all the same, and the store may
// be deployed again: what a leaf that hangs still writes is refused then. When ctx ends
// first, its error is among what is returned, and ErrNotClean may be too; the application takes no commands any more but is
// still deployed, and Undeploy may be called again.
func (a *AppParts) Undeploy(ctx context.Context, name string) error {
	app, err := a.App(name)
	if err != nil {
		return err
	}
	return a.undeploy(ctx, app)
}

func (a *AppParts) undeploy(ctx context.Context, app *App) error {
	err := app.stop(ctx)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return unfinished(ctx, err)
	case !errors.Is(err, ErrNotClean):
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.apps[app.Name()] == app {
		delete(a.apps, app.Name())
		app.release()
	}
	return err
}

// unfinished returns an error that says too that ctx has ended.
func unfinished(ctx context.Context, err error) error {
	if ended := context.Cause(ctx); !errors.Is(err, ended) {
		return errors.Join(err, ended)
	}
	return err
}

// Close undeploys everything and releases what AppParts holds in the actor system.
// It returns what Undeploy returned. When ctx ends while something is still deployed, its error is among that, and Close
// may be called again.
func (a *AppParts) Close(ctx context.Context) error {
	a.mu.Lock()
	a.closed = true
	apps := slices.Collect(maps.Values(a.apps))
	a.mu.Unlock()
	var errs []error
	for _, app := range apps {
		errs = append(errs, a.undeploy(ctx, app))
		if ctx.Err() != nil && len(a.Apps()) > 0 {
			return unfinished(ctx, errors.Join(errs...))
		}
	}
	a.ports.Close()
	a.dispatcher.Close()
	return errors.Join(errs...)
}
