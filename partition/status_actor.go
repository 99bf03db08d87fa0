package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// reportPause is how much time is between two reports to a subscriber, by the application's clock: one that does not get on
// keeps no more than so many in its mailbox.
const reportPause = 100 * time.Millisecond

// StatusActor returns the address of the actor that takes [messages.SubscribeToStatuses]. It is there from the first call
// until the application was undeployed. After that, and while it is being undeployed, it is ErrStopped.
func (a *App) StatusActor() (*actor.PID, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopping {
		return nil, ErrStopped
	}
	if a.reports == nil {
		r, err := spawnReports(a)
		if err != nil {
			return nil, err
		}
		a.reports = r
	}
	return a.reports.pid, nil
}

// reports is the actor that tells others what the actors of an application do. For each subscriber a goroutine watches.
type reports struct {
	app *App
	pid *actor.PID
	// subscribers end the reports of each subscriber. They belong to the actor.
	subscribers map[string]context.CancelFunc
	// closing is closed when nobody may wait for the next report any more.
	closing    chan struct{}
	running    sync.WaitGroup
	terminated chan struct{}
	// stopping is done once; ended is closed when the last report was sent.
	stopping sync.Once
	ended    chan struct{}
}

func spawnReports(a *App) (*reports, error) {
	r := &reports{
		app: a, subscribers: make(map[string]context.CancelFunc),
		closing: make(chan struct{}), terminated: make(chan struct{}), ended: make(chan struct{}),
	}
	key := actors.Key{Group: "status", ID: "0"}
	mailbox := actors.NewMailbox(actors.MailboxConfig{Key: key, System: a.parts.system, Observer: a.parts.options.Observer})
	props := actor.PropsFromProducer(func() actor.Actor { return r },
		actor.WithMailbox(func() actor.Mailbox { return mailbox }),
		actor.WithDispatcher(a.parts.dispatcher),
		actor.WithGuardian(a.parts.guardianOf(key.Group)))
	pid, err := a.parts.system.Root.SpawnNamed(props, a.name(key))
	r.pid = pid
	return r, err
}

// Receive implements [actor.Actor].
func (r *reports) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *messages.SubscribeToStatuses:
		r.subscribe(ctx, ctx.Sender())
	case *messages.UnsubscribeFromStatuses:
		r.unsubscribe(ctx, ctx.Sender())
	case *actor.Terminated:
		r.unsubscribe(ctx, m.Who)
	case *actor.Stopped:
		close(r.terminated)
	case actor.AutoReceiveMessage, actor.SystemMessage:
	default:
		r.app.parts.options.Logger.Warn("unknown message", zap.String("actor", ctx.Self().Id))
	}
}

func (r *reports) subscribe(ctx actor.Context, who *actor.PID) {
	if who == nil {
		return // nobody would get the reports
	}
	r.unsubscribe(ctx, who)
	to := actor.NewPID(who.Address, who.Id) // the sender's own address keeps all of its actor in memory
	reporting, end := context.WithCancel(context.Background())
	r.subscribers[nameOf(who)] = end
	ctx.Watch(to)
	r.running.Go(func() { r.report(reporting, to) })
}

func (r *reports) unsubscribe(ctx actor.Context, who *actor.PID) {
	if who == nil {
		return
	}
	if end, ok := r.subscribers[nameOf(who)]; ok {
		end()
		delete(r.subscribers, nameOf(who))
		ctx.Unwatch(who)
	}
}

// nameOf is who a subscriber is, whatever it asks.
func nameOf(who *actor.PID) string { return who.Address + "/" + who.Id }

// report sends what has changed, until all is told.
func (r *reports) report(ctx context.Context, to *actor.PID) {
	w := r.app.Watcher()
	for {
		news, err := w.Next(ctx)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return
		}
		r.app.parts.system.Root.Send(to, &messages.StatusReport{Statuses: news, Last: last})
		if last || !r.pause(ctx) {
			return
		}
	}
}

// pause reports whether there may be another report.
func (r *reports) pause(ctx context.Context) bool {
	passed := make(chan struct{})
	timer := r.app.parts.options.Clock.AfterFunc(reportPause, func() { close(passed) })
	defer timer.Stop()
	select {
	case <-passed:
	case <-r.closing:
	case <-ctx.Done():
		return false
	}
	return true
}

// stop ends the actor when every partition has ended, and waits for the last reports until ctx ends: a subscriber whose
// mailbox blocks may keep one for ever.
func (r *reports) stop(ctx context.Context) error {
	r.stopping.Do(func() {
		close(r.closing)
		r.app.parts.system.Root.Stop(r.pid)
		go func() {
			<-r.terminated
			r.running.Wait()
			close(r.ended)
		}()
	})
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stopReports ends the reports of an application whose partitions have ended.
func (a *App) stopReports(ctx context.Context, limit time.Duration) error {
	a.mu.Lock()
	r := a.reports
	a.mu.Unlock()
	if r == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := r.stop(limited); err != nil {
		return fmt.Errorf("%w: a subscriber does not take a report of statuses: %w", ErrNotClean, err)
	}
	return nil
}
