package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// stopLimit bounds what must happen even after an interrupt: stopping.
const stopLimit = 40 * time.Second

// deployment is an application that runs over a store.
type deployment struct {
	system *actor.ActorSystem
	store  *bolt.Store
	parts  *partition.AppParts
	app    *partition.App
	// opened is how long opening the store took, ready how long it took from then
	// until all partitions took commands.
	opened, ready time.Duration
}

// deploy opens the store, starts the application and waits until it is ready.
func deploy(ctx context.Context, dir string, d messages.Descriptor, o bolt.Options) (*deployment, error) {
	started := time.Now()
	store, err := openStore(ctx, dir, d, o)
	if err != nil {
		return nil, err
	}
	opened := time.Now()
	system := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		// The throttle of dead letters keeps a goroutine for so long; nobody reads what it says.
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	parts := partition.NewAppParts(system, partition.Options{})
	running := &deployment{system: system, store: store, parts: parts, opened: opened.Sub(started)}
	running.app, err = parts.Deploy(ctx, partition.Application{Descriptor: d}, store)
	if err == nil {
		err = running.app.Ready(ctx)
	}
	if err != nil {
		return nil, errors.Join(about(dir, err), running.stop())
	}
	running.ready = time.Since(opened)
	return running, nil
}

func openStore(ctx context.Context, dir string, d messages.Descriptor, o bolt.Options) (*bolt.Store, error) {
	store, err := bolt.Open(ctx, dir, d, o)
	if err != nil {
		return nil, about(dir, err)
	}
	return store, nil
}

// about says which store an error is about, unless it says so itself.
func about(dir string, err error) error {
	if strings.Contains(err.Error(), dir) {
		return err
	}
	return fmt.Errorf("%s: %w", dir, err)
}

// replayed counts the events that the partitions replayed when they started.
func (d *deployment) replayed() uint64 {
	sum := uint64(0)
	for _, s := range d.app.Status() {
		sum += s.Replayed
	}
	return sum
}

// undeploy stops the application and leaves the store open.
func (d *deployment) undeploy() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	if d.parts == nil {
		return nil
	}
	err := d.parts.Close(ctx)
	d.system.Shutdown()
	d.parts = nil
	return err
}

// stop stops the application and closes the store. It may be called twice.
func (d *deployment) stop() error {
	return errors.Join(d.undeploy(), closeStore(d.store))
}

func closeStore(store *bolt.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	return store.Close(ctx)
}
