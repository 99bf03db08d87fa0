package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// reign is the time for which the application runs here: a part of a leadership.
type reign struct {
	term uint64
	// ctx ends with the leadership.
	ctx context.Context
	app *partition.App
	// api is for those who ask over HTTP, own for other nodes that forward an append of their own program: it takes larger
	// bodies.
	api, own *httpapi.API
}

// govern runs the application whenever this node leads, and mends the node when it has stopped, until it is closed.
func (n *Node) govern() {
	defer close(n.ended)
	for n.running.Err() == nil {
		now, changed := n.part().leadership()
		if now.Term != 0 {
			n.rule(now.Term)
			continue
		}
		if now.Stopped != nil {
			n.mend(now.Stopped)
			continue
		}
		select {
		case <-changed:
		case <-n.running.Done():
		}
	}
}

// rule runs the application as long as this node leads in a term.
func (n *Node) rule(term uint64) {
	ctx, cancel := context.WithCancel(n.running)
	var watched sync.WaitGroup
	watched.Go(func() {
		defer cancel()
		n.awaitEnd(ctx, term)
	})
	watched.Go(func() { n.relieve(ctx) })
	n.o.Logger.Info("this node leads", zap.Uint64("term", term))
	err := n.run(ctx, term)
	if err != nil && ctx.Err() == nil {
		// It still leads, and nobody else can do that for it. Perhaps it can later.
		n.note(err)
		n.o.Logger.Error("the application does not run", zap.Uint64("term", term), zap.Error(err))
		select {
		case <-ctx.Done():
		case <-time.After(retryDelay):
		}
	}
	cancel()
	watched.Wait()
	n.o.Logger.Info("this node does not lead any more", zap.Uint64("term", term))
}

// awaitEnd waits until a term is over.
func (n *Node) awaitEnd(ctx context.Context, term uint64) {
	for {
		now, changed := n.part().leadership()
		if now.Term != term {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// run deploys the application, lets others have it until ctx ends, and undeploys it.
func (n *Node) run(ctx context.Context, term uint64) error {
	n.mu.Lock()
	application := n.application
	n.mu.Unlock()
	app, err := n.parts.Deploy(ctx, application, n.part().store)
	if err != nil {
		return err
	}
	r, err := n.newReign(ctx, term, app)
	if err == nil {
		err = app.Ready(ctx)
	}
	switch {
	case r == nil || ctx.Err() != nil:
		n.undeploy(app)
		return err
	case err != nil:
		// As on one node, the other partitions work.
		n.o.Logger.Error("not all partitions take transactions", zap.Error(err))
	}
	n.note(nil)
	n.become(r)
	led := make(chan struct{})
	go func() {
		defer close(led)
		n.lead(r)
	}()
	<-ctx.Done()
	n.become(nil)
	r.api.Stop()
	r.own.Stop()
	n.undeploy(app)
	select {
	case <-led:
	case <-time.After(application.Settings.StopLimit):
		n.o.Logger.Warn("Lead goes on after its context has ended", zap.Uint64("term", term))
	}
	return nil
}

// awaitReign returns the reign of now. If this node is about to lead, or hands over, it waits for what comes of that, for a
// failover at most: whoever asks would do nothing else, and come again too early or too late. nil if the application does not
// run here.
func (n *Node) awaitReign(ctx context.Context) *reign {
	timer := time.NewTimer(n.o.Failover)
	defer timer.Stop()
	for {
		r, here := n.now()
		now, there := n.part().leadership()
		if r != nil || now.Leader != n.o.Node {
			return r
		}
		select {
		case <-here:
		case <-there:
		case <-timer.C:
			return nil
		case <-n.running.Done():
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// newReign makes what answers others.
func (n *Node) newReign(ctx context.Context, term uint64, app *partition.App) (*reign, error) {
	r := &reign{term: term, ctx: ctx, app: app}
	var err error
	if r.api, err = httpapi.New(app, n.part().reader, n.o.HTTP); err != nil {
		return nil, err
	}
	own := n.o.HTTP
	own.MaxBody = ownBody(app.Config().Settings.GroupBytes)
	if r.own, err = httpapi.New(app, n.part().reader, own); err != nil {
		return nil, err
	}
	return r, nil
}

// ownBody is how much the body of an append has at the most that the application takes: base64, and its members.
func ownBody(groupBytes int) int64 { return 2*int64(groupBytes) + 1<<20 }

// lead calls what the user wants to run here.
func (n *Node) lead(r *reign) {
	if n.o.Lead == nil {
		return
	}
	if err := n.o.Lead(r.ctx, r.app); err != nil && r.ctx.Err() == nil {
		n.note(err)
		n.o.Logger.Error("Lead has failed", zap.Uint64("term", r.term), zap.Error(err))
	}
}

// undeploy ends the application. What it cannot flush, the store flushes that follows, or the next owner has it in its log.
// That nobody waits for ever is the setting StopLimit.
func (n *Node) undeploy(app *partition.App) {
	err := n.parts.Undeploy(context.Background(), app.Name())
	if err != nil && !isOver(err) && !errors.Is(err, messages.ErrFenced) {
		n.o.Logger.Warn("the application was ended", zap.Error(err))
	}
}
