package partition

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/internal/sequencer"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// App is a deployed application. It is safe for concurrent use; after Undeploy
// its sequencers answer ErrStopped.
type App struct {
	parts  *AppParts
	app    Application
	store  storage.Store
	reader *Reader
	// release gives the store back.
	release    func()
	deployment uint64
	// id makes the names of actors unique in the actor system: what an earlier
	// deployment left behind may still hold its own.
	id string
	// partitions are those that the store has, sequencers are by id: nil for all others.
	partitions []*actors.Partition
	sequencers []*Sequencer
	tally      *actors.Tally

	mu         sync.Mutex
	settings   Settings
	processors []*CommandProcessor
	// spawned counts the command processors, also those that have ended and are not among processors any more.
	spawned  int
	groups   []namedGroup
	stopping bool
	// subscriptions are those that run, or are being started, by name; started counts them.
	subscriptions map[string]*Subscription
	started       uint64
	// starting is taken by whoever starts a subscription, or changes one that does not run.
	starting turn
	// changes are those of the actors' statuses, shown are the actors. A list that is there is never changed.
	changes changes
	shown   atomic.Pointer[[]shown]
	// reports tell them to actors, nil if nobody has asked.
	reports *reports
}

// name builds the name of every actor of an application.
func (a *App) name(key actors.Key) string {
	return fmt.Sprintf("partita/%s/%s/%s", a.app.Descriptor.Application, a.id, key)
}

func spawnApp(parts *AppParts, app Application, store storage.Store) (*App, error) {
	place := actors.NewPlace(store, parts.loggerOf(app.Descriptor.Application, "store"))
	a := &App{
		parts:      parts,
		app:        app,
		store:      store,
		reader:     NewReader(store),
		deployment: parts.deployments,
		id:         parts.system.ProcessRegistry.NextId(),
		settings:   app.Settings,
		tally:      new(actors.Tally),
		starting:   newTurn(),
	}
	config := a.partitionConfig(place)
	a.sequencers = make([]*Sequencer, app.Partitions)
	var all []shown
	for i, id := range ownedBy(store, app.Partitions) {
		config.Key = actors.Key{Group: partitionGroup, ID: id.String()}
		config.Name, config.Sequencer.Partition = a.name(config.Key), id
		p, err := actors.SpawnPartition(config)
		if err != nil {
			return nil, errors.Join(err, a.abandon())
		}
		a.partitions, all = append(a.partitions, p), append(all, p)
		if i%spawnYield == 0 {
			runtime.Gosched()
		}
		a.sequencers[id] = actors.NewSequencer(p, parts.ports, store)
	}
	a.shown.Store(&all)
	return a, nil
}

// spawnYield is after how many partitions those that were spawned may run: each that is
// about to has a goroutine.
const spawnYield = 64

// epochTakes is how many partitions take an epoch at the same time. A commit takes all those
// that wait for one; each of them keeps a goroutine.
const epochTakes = 512

// partitionConfig is what all partitions have in common.
func (a *App) partitionConfig(place *actors.Place) actors.PartitionConfig {
	return actors.PartitionConfig{
		Sequencer: sequencer.Config{
			Descriptor:      a.app.Descriptor,
			Kinds:           sequencer.NewKinds(a.app.Descriptor),
			Settings:        a.app.Settings,
			NoWorkspaceZero: !a.app.WorkspaceZero,
			CacheNumbers:    a.app.CacheNumbers / int(a.app.Partitions),
			Seed:            a.deployment,
		},
		Store:         a.store,
		System:        a.parts.system,
		Guardian:      a.parts.guardianOf(partitionGroup),
		Dispatcher:    a.parts.dispatcher,
		Clock:         a.parts.options.Clock,
		Logger:        a.parts.loggerOf(a.Name(), "partition"),
		Requests:      a.app.RequestLane,
		RequestBytes:  a.app.RequestLaneBytes,
		Permits:       actors.NewPermits(a.app.Actualizations),
		EpochPermits:  actors.NewPermits(epochTakes),
		Place:         place,
		FarAhead:      new(atomic.Bool),
		Traces:        a.parts.traces(),
		Observer:      a.parts.options.Observer,
		Tally:         a.tally,
		AlarmAfter:    a.parts.options.AlarmAfter,
		Restart:       a.parts.options.policyOf(partitionGroup).String(),
		StatusChanged: a.statusChanged,
	}
}

// TraceOf returns the trace that what is done with ctx belongs to: the context's, else a new one. It is none if there is
// no generator, see [Options], or ctx ends before there is an id. Calls with a context that carries it, see
// [ids.ContextWithTrace], belong to it.
func (a *App) TraceOf(ctx context.Context) ids.TraceID {
	traces := a.parts.traces()
	id, _ := traces.Of(ctx)
	return id
}

// abandon stops what was spawned when the rest could not be.
func (a *App) abandon() error {
	ctx, cancel := context.WithTimeout(context.Background(), a.app.Settings.StopLimit)
	defer cancel()
	return a.stop(ctx)
}

// Name returns the application's name.
func (a *App) Name() string { return a.app.Descriptor.Application }

// Partitions returns the number of partitions.
func (a *App) Partitions() uint32 { return a.app.Partitions }

// PartitionOf returns the partition of a workspace: WSID mod partitions.
func (a *App) PartitionOf(ws messages.WSID) messages.PartitionID {
	return messages.PartitionOf(ws, a.app.Partitions)
}

// Sequencer returns the sequencer of a partition, ErrUnknownPartition, or ErrNotOwned.
func (a *App) Sequencer(id messages.PartitionID) (*Sequencer, error) {
	if uint32(id) >= a.app.Partitions {
		return nil, fmt.Errorf("%w: got %d, want 0 to %d", ErrUnknownPartition, id, a.app.Partitions-1)
	}
	if s := a.sequencers[id]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%w: partition %d", ErrNotOwned, id)
}

// Owns reports whether a partition runs here: all do, unless the store has a part of them only, see [storage.Sharded].
func (a *App) Owns(id messages.PartitionID) bool {
	return uint32(id) < a.app.Partitions && a.sequencers[id] != nil
}

// SequencerOf returns the sequencer of a workspace's partition.
func (a *App) SequencerOf(ws messages.WSID) (*Sequencer, error) {
	return a.Sequencer(a.PartitionOf(ws))
}

// Status returns the state of each partition that runs here, in order of their ids. It is as of the state's last change; the last event and the
// checkpoint are those of now: what an append was acknowledged for is in it.
func (a *App) Status() []Status {
	all := make([]Status, len(a.partitions))
	for i, p := range a.partitions {
		all[i] = p.Status()
	}
	return all
}

func (a *App) statusChanged(Status) { a.changes.tell() }

// Ready waits until every partition takes transactions; one that is alarming counts, whatever
// about, so that Ready does not wait for a clock to be set right. It returns the errors of
// all partitions that have failed, ErrStopped if the application is being
// undeployed, or the error of ctx.
func (a *App) Ready(ctx context.Context) error {
	for next := 0; ; {
		changed := a.changes.await()
		// Those before were found settled: there may be too many to look at all of them after
		// each change.
		next = a.initializing(next)
		if next == len(a.partitions) {
			if next = a.initializing(0); next == len(a.partitions) {
				return a.settled()
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// initializing returns the first partition that initializes, from one on; the number of
// partitions if none does.
func (a *App) initializing(from int) int {
	for i, p := range a.partitions[from:] {
		if p.Status().State == messages.StateInitializing {
			return from + i
		}
	}
	return len(a.partitions)
}

// settled returns why not all partitions that initialize no more take transactions.
func (a *App) settled() error {
	var errs []error
	for _, p := range a.partitions {
		switch s := p.Status(); s.State {
		case messages.StateFailed:
			errs = append(errs, s.Err)
		case messages.StateTerminating, messages.StateTerminated:
			return fmt.Errorf("%w: partition %d is %v", ErrStopped, s.Partition, s.State)
		case messages.StateInitializing, messages.StateNormal, messages.StateAlarming:
		}
	}
	return joined(errs)
}

// SpawnCommandProcessor starts a command processor that serves every partition.
// Spawn as many as commands should run at the same time: each runs one after the
// other, and a partition runs one transaction at a time. It ends with the
// application.
func (a *App) SpawnCommandProcessor(handler Handler) (*CommandProcessor, error) {
	return a.spawnProcessor(actors.CommandProcessorConfig{Handler: handler})
}

// SpawnAppendProcessor starts a command processor whose commands are appended, each
// in one message: the partition is not held while a command waits for the disk, and
// commands of many processors share a commit.
func (a *App) SpawnAppendProcessor(drafter Drafter) (*CommandProcessor, error) {
	return a.spawnProcessor(actors.CommandProcessorConfig{Drafter: drafter})
}

func (a *App) spawnProcessor(c actors.CommandProcessorConfig) (*CommandProcessor, error) {
	if c.Handler == nil && c.Drafter == nil {
		return nil, fmt.Errorf("%w: handler or drafter: got none", messages.ErrSettings)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopping {
		return nil, ErrStopped
	}
	a.forgetEnded()
	key := actors.Key{Group: processorGroup, ID: fmt.Sprint(a.spawned)}
	c = a.processorConfig(key, c)
	c.Name, c.Limit = a.name(key), a.settings.TransactionLimit
	p, err := actors.SpawnCommandProcessor(c, a.parts.ports)
	if err != nil {
		return nil, err
	}
	a.processors = append(a.processors, p)
	a.spawned++
	a.show(p)
	return p, nil
}

// forgetEnded forgets command processors and groups that somebody has stopped, when others come: whoever makes them again
// and again has no more than there are. The caller holds a.mu.
func (a *App) forgetEnded() {
	if slices.ContainsFunc(a.processors, hasEnded) {
		a.processors = slices.DeleteFunc(slices.Clone(a.processors), hasEnded)
		a.hide(func(s shown) bool {
			p, ok := s.(*CommandProcessor)
			return ok && hasEnded(p)
		})
	}
	a.groups = slices.DeleteFunc(slices.Clone(a.groups), func(g namedGroup) bool { return g.Ended() })
}

func hasEnded(p *CommandProcessor) bool {
	return p.Standing().Status().State == messages.StateTerminated
}

// stop ends the subscriptions, then the command processors with those of groups, then the
// partitions, all of a kind at the same time.
func (a *App) stop(ctx context.Context) error {
	a.mu.Lock()
	a.stopping = true
	processors, members, stopLimit := a.processors, a.groups, a.settings.StopLimit
	a.mu.Unlock()
	hadTime := ctx.Err() == nil
	hanging := a.stopSubscriptions(ctx, stopLimit)
	hanging = errors.Join(hanging, a.stopProcessors(ctx, processors, members, stopLimit))
	if !hadTime {
		return context.Cause(ctx) // nobody could finish in no time: that says nothing of handlers
	}
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), hanging)
	}
	err := a.stopPartitions(ctx, stopLimit)
	if ctx.Err() == nil {
		err = errors.Join(err, a.stopReports(ctx, stopLimit))
	}
	return errors.Join(hanging, err)
}

// stopPartitions asks all partitions at the same time. There may be so many that not each gets a goroutine
// that waits for it, but those only that take long.
func (a *App) stopPartitions(ctx context.Context, stopLimit time.Duration) error {
	for _, p := range a.partitions {
		p.BeginStop()
	}
	patience, cancel := context.WithTimeout(ctx, stopLimit/4)
	defer cancel()
	var errs []error
	var late []*actors.Partition
	for _, p := range a.partitions {
		select {
		case <-p.Terminated():
			errs = append(errs, a.stopPartition(ctx, p))
		case <-patience.Done():
			late = append(late, p)
		}
	}
	return joined(append(errs, together(len(late), func(i int) error { return a.stopPartition(ctx, late[i]) })))
}

// stopProcessor leaves a command processor behind whose handler ignores the end
// of its context.
func stopProcessor(ctx context.Context, p *CommandProcessor, stopLimit time.Duration) error {
	limited, cancel := context.WithTimeoutCause(ctx, stopLimit, actors.ErrHanging)
	defer cancel()
	if err := p.Stop(limited); err != nil {
		return fmt.Errorf("%w: a command handler: %w", ErrNotClean, err)
	}
	return nil
}

func (a *App) stopPartition(ctx context.Context, p *actors.Partition) error {
	stopped, err := p.Stop(ctx, a.parts.ports)
	switch {
	case err != nil:
		return err
	case stopped.Abandoned > 0:
		return notClean(p.Status(), fmt.Sprintf("%d leaves hang in storage and were left behind", stopped.Abandoned))
	case !stopped.Clean:
		return notClean(p.Status(), "not everything was flushed, the next start replays the rest")
	}
	return nil
}

func notClean(s Status, what string) error {
	return errors.Join(fmt.Errorf("%w: partition %d: %s", ErrNotClean, s.Partition, what), s.Err)
}

// together runs n pieces of work at the same time and joins their errors.
func together(n int, work func(int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = work(i) })
	}
	all.Wait()
	return joined(errs)
}
