// Package partita opens an application in one step: its store, an actor system of its own, and the partitions.
//
//	app, err := partita.Open(ctx, dir, partition.Application{Descriptor: descriptor}, partita.Options{})
//	sequencer, err := app.SequencerOf(workspace)
//	tx, err := sequencer.Start(ctx, kind, workspace)
//	number, err := tx.Next(ctx, invoices)
//	err = tx.Commit(ctx, body)
//	err = app.Close(ctx)
//
// Package partition tells what can be done with an application. If you have an actor system, deploy several applications
// or keep another kind of store, take each step there: [partition.NewAppParts].
package partita

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// Options are the settings of an application that is opened in one step. The zero value opens a store that is there.
type Options struct {
	// Create makes a new store if there is none in the directory; without it Open refuses that. It is the same as
	// Store.Create, which tells when to set it.
	Create bool
	// Store are the settings of the store.
	Store bolt.Options
	// Runtime is what the application runs with: logger, clock, observer.
	Runtime partition.Options
}

// App is an application that runs over a store of its own. It is safe for concurrent use.
type App struct {
	*partition.App
	// Store is what it runs over: for backups and figures. Close closes it.
	Store *bolt.Store

	parts  *partition.AppParts
	system *actor.ActorSystem

	// closing has one place: whoever is in it closes, and has what is below.
	closing            chan struct{}
	undeployed, closed bool
	// answer is what a Close that comes to its end returns.
	answer error
}

// Open opens the store in a directory, or makes one if [Options].Create says so, deploys the application, and returns
// when every partition takes transactions. Nothing is printed: what is to be told goes to Options.Runtime.Logger.
//
// Errors: those of [bolt.Open], ErrNotFound of package storage if there is no store among them; those of
// [partition.AppParts.Deploy] and of [partition.App.Ready]. Nothing stays open then, and an application that is wrong
// makes no store.
func Open(ctx context.Context, dir string, application partition.Application, o Options) (*App, error) {
	if err := application.WithDefaults().Validate(); err != nil {
		return nil, err
	}
	o.Store.Create = o.Store.Create || o.Create
	store, err := bolt.Open(ctx, dir, application.Descriptor, o.Store)
	if err != nil {
		return nil, err
	}
	system := quiet.NewSystem()
	a := &App{Store: store, system: system, parts: partition.NewAppParts(system, o.Runtime), closing: make(chan struct{}, 1)}
	if a.App, err = a.parts.Deploy(ctx, application, store); err == nil {
		err = a.Ready(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, a.Close(context.WithoutCancel(ctx)))
	}
	return a, nil
}

// Close ends the application, see [partition.AppParts.Undeploy], then the store and the actor system. Give it a context of
// its own, not the one whose end has told the program to stop.
//
// When ctx ends first, its error, [context.Cause], is among what Close returns. What is left may still be open then, and
// the store locked: call Close again, which goes on. Else all is closed and the store can be opened again, whatever is
// returned: [partition.ErrNotClean] says that something was not flushed, which the next start replays. From then on Close
// does nothing, and returns the same again, whatever ctx is. Of several callers at the same time one closes, and the
// others wait for that, each as long as its own ctx.
func (a *App) Close(ctx context.Context) error {
	if err := a.enterClose(ctx); err != nil {
		return err
	}
	defer func() { <-a.closing }()
	if a.closed {
		return a.answer
	}
	if !a.undeployed {
		a.answer = a.parts.Close(ctx)
		if ctx.Err() != nil && len(a.parts.Apps()) > 0 {
			return a.answer
		}
		a.undeployed = true
	}
	err := a.Store.Close(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return errors.Join(a.answer, context.Cause(ctx))
	}
	a.system.Shutdown()
	a.closed, a.answer = true, errors.Join(a.answer, err)
	return a.answer
}

// enterClose waits until nobody else closes. If nobody does, ctx may have ended.
func (a *App) enterClose(ctx context.Context) error {
	select {
	case a.closing <- struct{}{}:
		return nil
	default:
	}
	select {
	case a.closing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
