package partition_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/storagetest"
)

type partitionKey = actors.Key

// The lane of a command processor is as narrow as the application says, in bytes too.
func TestProcessorLane(t *testing.T) {
	for name, narrow := range map[string]func(*partition.Application){
		"requests": func(a *partition.Application) { a.RequestLane = 1 },
		"bytes":    func(a *partition.Application) { a.RequestLaneBytes = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, partition.Options{})
			app := billing("one")
			narrow(&app)
			a := h.deploy(app, h.newStore(app.Descriptor))
			begun, release := make(chan struct{}, 3), make(chan struct{})
			p, err := a.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error {
				begun <- struct{}{}
				<-release
				return nil
			})
			h.check(err)
			results := make(chan error, 3)
			execute := func() {
				_, err := p.Execute(h.ctx, messages.Command{Workspace: 3, Kind: shop})
				results <- err
			}
			go execute()
			soon(h, "the first command", begun)
			go execute()
			go execute()
			wants(t, "one of two", soon(h, "an answer", results), messages.ErrBusy)
			close(release)
			for range 2 {
				wants(t, "who had a place", soon(h, "an answer", results), nil)
			}
		})
	}
}

// hurried has a small stop limit.
func hurried(name string) partition.Application {
	app := billing(name)
	app.Settings = partition.Settings{StopLimit: 50 * time.Millisecond, FlushInterval: time.Millisecond, RetryDelay: time.Millisecond}
	return app
}

// Storage hangs: Undeploy ends, and says so; the leaf that was left behind is shown
// until the hang ends. The application can be deployed again meanwhile.
func TestUndeployWhileStorageHangs(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := hurried("one")
	store := deaf{h.newStore(app.Descriptor)}
	a := h.deploy(app, store)
	gate := h.newGate()
	store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Hold(gate), Times: 1})
	h.commit(a, 3)
	h.check(gate.Await(h.ctx))
	undeployed := make(chan error, 1)
	go func() { undeployed <- h.parts.Undeploy(h.ctx, "one") }()
	wants(t, "undeploy", soon(h, "Undeploy", undeployed), partition.ErrNotClean)
	if s := a.Status()[3]; s.State != messages.StateTerminated || s.Abandoned != 1 {
		t.Errorf("got %+v", s)
	}
	_, err := h.parts.App("one")
	wants(t, "App", err, partition.ErrUnknownApplication)
	again := h.deploy(app, store)
	if n := h.commit(again, 3); n != 2 {
		t.Errorf("got number %d, want 2", n)
	}
	gate.Release()
	h.eventually("the end of the leaf", func() bool { return a.Status()[3].Abandoned == 0 })
	if n := h.commit(again, 3); n != 3 {
		t.Errorf("got number %d, want 3", n)
	}
}

// Storage hangs in the first epoch: Undeploy ends as well, also when a partition
// waits for its permit behind the one that hangs.
func TestUndeployWhileDeployHangs(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := hurried("one")
	app.Actualizations = 1
	store := deaf{h.newStore(app.Descriptor)}
	gate := h.newGate()
	store.Plant(storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Hold(gate), Times: 1})
	a, err := h.parts.Deploy(h.ctx, app, store)
	h.check(err)
	h.check(gate.Await(h.ctx))
	wants(t, "undeploy", h.parts.Undeploy(h.ctx, "one"), partition.ErrNotClean)
	abandoned := 0
	for _, s := range a.Status() {
		abandoned += s.Abandoned
	}
	if abandoned != 1 {
		t.Errorf("%d leaves were left behind, want 1", abandoned)
	}
}

// Undeploy's own context ends first: the application is still deployed, refuses
// new work, and Undeploy can be called again.
func TestUndeployContextEnds(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	store := h.newStore(app.Descriptor)
	a := h.deploy(app, store)
	s, err := a.SequencerOf(3)
	h.check(err)
	tx, err := s.Start(h.ctx, shop, 3)
	h.check(err)
	ctx, cancel := context.WithCancel(h.ctx)
	undeployed := make(chan error, 1)
	go func() { undeployed <- h.parts.Undeploy(ctx, "one") }()
	h.eventually("the stop", func() bool { return a.Status()[3].State == messages.StateTerminating })
	cancel()
	wants(t, "undeploy", soon(h, "Undeploy", undeployed), context.Canceled)
	_, err = h.parts.App("one")
	h.check(err)
	_, err = s.Start(h.ctx, shop, 3)
	var busy *partition.BusyError
	if !errors.As(err, &busy) || busy.Reason != messages.BusyStopping {
		t.Errorf("got %v, want busy: stopping", err)
	}
	_, err = a.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { return nil })
	wants(t, "spawn", err, partition.ErrStopped)
	h.check(tx.Commit(h.ctx, nil))
	h.check(h.parts.Undeploy(h.ctx, "one"))
}

// Two who undeploy at the same time both learn how it ended.
func TestUndeployConcurrently(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	a := h.deploy(app, h.newStore(app.Descriptor))
	for ws := range messages.WSID(8) {
		h.commit(a, ws)
	}
	results := make(chan error, 4)
	for range cap(results) {
		go func() { results <- h.parts.Undeploy(h.ctx, "one") }()
	}
	for range cap(results) {
		if err := soon(h, "Undeploy", results); err != nil && !errors.Is(err, partition.ErrUnknownApplication) {
			t.Error(err)
		}
	}
}

// A command handler hangs: Undeploy waits for the stop limit and leaves it behind;
// its transaction is cancelled, so that the partition stops cleanly.
func TestUndeployWhileAHandlerHangs(t *testing.T) {
	for name, heeds := range map[string]bool{"deaf": false, "heeding its context": true} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, partition.Options{})
			app := hurried("one")
			a := h.deploy(app, h.newStore(app.Descriptor))
			arrived, release := make(chan struct{}, 1), make(chan struct{})
			p, err := a.SpawnCommandProcessor(func(ctx context.Context, _ *partition.CommandContext) error {
				arrived <- struct{}{}
				if heeds {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				<-release
				return nil
			})
			h.check(err)
			answer := make(chan error, 1)
			go func() {
				_, err := p.Execute(h.ctx, messages.Command{Workspace: 3, Kind: shop, RawRecords: []messages.RawRecord{{ID: 1, Seq: invoices}}})
				answer <- err
			}()
			soon(h, "the handler", arrived)
			wants(t, "undeploy", h.parts.Undeploy(h.ctx, "one"), partition.ErrNotClean)
			for _, s := range a.Status() {
				if s.State != messages.StateTerminated || !s.Clean || s.Abandoned != 0 {
					t.Errorf("got %+v", s)
				}
			}
			close(release)
			wants(t, "the command", soon(h, "the answer", answer), partition.ErrStopped)
		})
	}
}

// An application that is undeployed with a backlog answers everybody.
func TestUndeployWithABacklog(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("one")
	a := h.deploy(app, h.newStore(app.Descriptor))
	const clients = 40
	answers := make(chan error, 2*clients)
	begun := make(chan struct{}, 2*clients)
	p, err := a.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { begun <- struct{}{}; return nil })
	h.check(err)
	for i := range clients {
		ws := messages.WSID(i % 8)
		go func() {
			_, err := p.Execute(h.ctx, messages.Command{Workspace: ws, Kind: shop})
			answers <- err
		}()
		go func() {
			s, err := a.SequencerOf(ws)
			if err == nil {
				var tx *partition.Transaction
				if tx, err = s.StartWaiting(h.ctx, shop, ws); err == nil {
					err = tx.Commit(h.ctx, nil)
				}
			}
			answers <- err
		}()
	}
	soon(h, "the first command", begun)
	h.check(h.parts.Undeploy(h.ctx, "one"))
	for range 2 * clients {
		err := soon(h, "an answer", answers)
		if err != nil && !errors.Is(err, partition.ErrStopped) && !errors.Is(err, partition.ErrBusy) {
			t.Errorf("got %v", err)
		}
	}
}

// An actor that was restarted again and again is undeployed all the same.
func TestUndeployDuringTheBackOff(t *testing.T) {
	h := newHouse(t, partition.Options{RestartDelay: 50 * time.Millisecond})
	app := hurried("one")
	store := h.newStore(app.Descriptor)
	a := h.deploy(app, store)
	store.Plant(storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Panic("injected")})
	store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Panic("injected")})
	h.commit(a, 3)
	h.eventually("some restarts", func() bool { return store.Injected(storagetest.OpTakeEpoch) > 3 })
	err := h.parts.Undeploy(h.ctx, "one")
	wants(t, "undeploy", err, partition.ErrNotClean)
	store.Heal()
	if n := h.commit(h.deploy(app, store), 3); n != 2 {
		t.Errorf("got number %d, want 2", n)
	}
}

// A restart waits for a leaf that hangs: Undeploy does not.
func TestUndeployWhileARestartHangs(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := hurried("one")
	store := deaf{h.newStore(app.Descriptor)}
	a := h.deploy(app, store)
	gate := h.newGate()
	store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Hold(gate), Times: 1})
	h.commit(a, 3)
	h.check(gate.Await(h.ctx))
	store.Plant(storagetest.Fault{Op: storagetest.OpNumbers, Do: storagetest.Panic("injected"), Times: 1})
	s, err := a.SequencerOf(7)
	h.check(err)
	_, err = s.Start(h.ctx, shop, 7)
	wants(t, "start", err, messages.ErrInterrupted)
	wants(t, "undeploy", h.parts.Undeploy(h.ctx, "one"), partition.ErrNotClean)
	if s := a.Status()[3]; s.State != messages.StateTerminated || s.Abandoned == 0 {
		t.Errorf("got %+v", s)
	}
	_, err = s.Start(h.ctx, shop, 3)
	wants(t, "start", err, partition.ErrStopped)
}

// Storage hangs while everything is closed.
func TestCloseWhileStorageHangs(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := hurried("one")
	store := deaf{h.newStore(app.Descriptor)}
	a := h.deploy(app, store)
	gate := h.newGate()
	store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Hold(gate)})
	for ws := range messages.WSID(4) {
		h.commit(a, ws)
	}
	for range 4 {
		h.check(gate.Await(h.ctx))
	}
	wants(t, "close", h.parts.Close(h.ctx), partition.ErrNotClean)
	for _, s := range a.Status() {
		if s.Abandoned != 1 {
			t.Errorf("got %+v", s)
		}
	}
}

// panicking panics in front of commands, and of Starts of workspace 4.
type panicking struct{ counting }

func (*panicking) Taken(_ partitionKey, m any) {
	switch m := m.(type) {
	case *messages.Command:
		panic("injected")
	case *messages.Start:
		if m.Workspace == 4 {
			panic("injected")
		}
	}
}

// A Start that its partition failed with was not granted.
func TestStartInterrupted(t *testing.T) {
	o := &panicking{counting{posted: make(map[string]int), handled: make(map[string]int)}}
	h := newHouse(t, partition.Options{Observer: o})
	app := billing("one")
	a := h.deploy(app, h.newStore(app.Descriptor))
	s, err := a.SequencerOf(4)
	h.check(err)
	_, err = s.Start(h.ctx, shop, 4)
	wants(t, "start", err, messages.ErrInterrupted)
	if errors.Is(err, messages.ErrOutcomeUnknown) {
		t.Errorf("got %v, nothing could have been written", err)
	}
	h.eventually("the restart", func() bool { return a.Status()[0].Restarts == 1 && a.Status()[0].State == messages.StateNormal })
	h.commit(a, 0)
}

// A command that its processor failed with may have been written: the answer says
// so.
func TestCommandInterrupted(t *testing.T) {
	o := &panicking{counting{posted: make(map[string]int), handled: make(map[string]int)}}
	h := newHouse(t, partition.Options{Observer: o})
	app := billing("one")
	a := h.deploy(app, h.newStore(app.Descriptor))
	p, err := a.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { return nil })
	h.check(err)
	_, err = p.Execute(h.ctx, messages.Command{Workspace: 3, Kind: shop})
	wants(t, "execute", err, messages.ErrInterrupted)
	wants(t, "execute", err, messages.ErrOutcomeUnknown)
}
