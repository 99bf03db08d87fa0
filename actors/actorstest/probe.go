package actorstest

import (
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Probe is an actor that a test acts for: it keeps what it is sent until the test takes it, and sends what the test
// says. So it stands in for whoever speaks with the actor under test: it asks, and expects the answers, or is asked,
// and answers. Its methods belong to one goroutine.
type Probe struct {
	t        testing.TB
	system   *actor.ActorSystem
	patience time.Duration
	pid      *actor.PID
	// from sent the message that was taken last.
	from *actor.PID
	once sync.Once

	mu    sync.Mutex
	inbox []letter
	// came has room for one.
	came chan struct{}
}

type letter struct {
	message any
	from    *actor.PID
}

// NewProbe spawns a probe, which stops when the test ends. It waits for a message for as long as patience says, of
// the machine's time.
func NewProbe(t testing.TB, system *actor.ActorSystem, patience time.Duration) *Probe {
	t.Helper()
	p := &Probe{t: t, system: system, patience: patience, came: make(chan struct{}, 1)}
	p.pid = system.Root.Spawn(actor.PropsFromFunc(p.receive))
	t.Cleanup(p.Stop)
	return p
}

// receive keeps what peers send. What Proto.Actor says of the probe's own life is nobody's message.
func (p *Probe) receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started, *actor.Stopping, *actor.Stopped:
		return
	}
	p.mu.Lock()
	p.inbox = append(p.inbox, letter{ctx.Message(), ctx.Sender()})
	p.mu.Unlock()
	select {
	case p.came <- struct{}{}:
	default:
	}
}

// PID returns the probe's address, to be given to those that shall send to it.
func (p *Probe) PID() *actor.PID { return p.pid }

// Send sends a message whose sender is the probe, and does not wait.
func (p *Probe) Send(to *actor.PID, message any) {
	p.system.Root.RequestWithCustomSender(to, message, p.pid)
}

// Reply sends a message to whoever sent the one that was taken last.
func (p *Probe) Reply(message any) {
	p.t.Helper()
	if p.from == nil {
		p.t.Fatalf("probe: got no sender to reply to with %T", message)
	}
	p.Send(p.from, message)
}

// Watch lets the probe be told of an actor's end: it gets an *[actor.Terminated]. It must come before the actor is
// told to stop: one that is stopping already calls itself terminated.
func (p *Probe) Watch(pid *actor.PID) {
	process, _ := p.system.ProcessRegistry.Get(pid)
	process.SendSystemMessage(pid, &actor.Watch{Watcher: p.pid})
}

// Take waits for the next message, of whatever type. The test fails if none comes.
func (p *Probe) Take() any {
	p.t.Helper()
	return p.take("a message")
}

// Expect waits for the next message of a probe, which must be of a type. The test fails if it is of another one, or
// if none comes.
func Expect[M any](p *Probe) M {
	p.t.Helper()
	want := reflect.TypeFor[M]()
	got := p.take(want.String())
	message, ok := got.(M)
	if !ok {
		p.t.Fatalf("probe: got %T %+v, want %v", got, got, want)
	}
	return message
}

func (p *Probe) take(want string) any {
	p.t.Helper()
	patience := time.NewTimer(p.patience)
	defer patience.Stop()
	for {
		p.mu.Lock()
		if len(p.inbox) > 0 {
			next := p.inbox[0]
			p.inbox = p.inbox[1:]
			p.mu.Unlock()
			p.from = next.from
			return next.message
		}
		p.mu.Unlock()
		select {
		case <-p.came:
		case <-patience.C:
			p.t.Fatalf("probe: got nothing for %v, want %s", p.patience, want)
		}
	}
}

// Stop ends the probe, and returns when it has ended: those who watch it are told. Stopping again is harmless.
func (p *Probe) Stop() {
	p.once.Do(func() {
		if err := p.system.Root.StopFuture(p.pid).Wait(); err != nil {
			p.t.Errorf("probe: stop: %v", err)
		}
	})
}
