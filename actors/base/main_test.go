package base_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/actors/base"
	"github.com/partita-go/partita/internal/quiet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newSystem returns a silent actor system, which needs no shutting down.
func newSystem() *actor.ActorSystem {
	return quiet.NewSystem()
}

// query is what goes into the request lane in these tests, note what does not.
type (
	query struct{ number int }
	note  struct{ number int }
)

func isQuery(message any) bool {
	_, ok := message.(*query)
	return ok
}

// refused is the answer of a mailbox.
type refused struct {
	number int
	why    base.RefuseReason
}

func refuse(message any, why base.RefuseReason) any {
	switch m := message.(type) {
	case *query:
		return refused{m.number, why}
	case *note:
		return refused{m.number, why}
	}
	return refused{-1, why}
}

// next waits for a value.
func next[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came in 20 s")
		panic("unreachable")
	}
}

// watch asks for the end of an actor. It must come before the actor is told to
// stop: one that is stopping already calls itself terminated.
func watch(i *actorstest.Inbox, system *actor.ActorSystem, pid *actor.PID) {
	p, _ := system.ProcessRegistry.Get(pid)
	p.SendSystemMessage(pid, &actor.Watch{Watcher: i.PID})
}

// awaitTerminated waits until the actor that is watched has stopped.
func awaitTerminated(t testing.TB, i *actorstest.Inbox, pid *actor.PID) {
	t.Helper()
	for {
		if end, ok := next(t, i.System).(*actor.Terminated); ok && end.Who.Equal(pid) {
			return
		}
	}
}

// registered returns how many processes have names that begin with prefix.
func registered(system *actor.ActorSystem, prefix string) int {
	n := 0
	for _, m := range system.ProcessRegistry.LocalPIDs.LocalPIDs {
		for _, id := range m.Keys() {
			if strings.HasPrefix(id, prefix) {
				n++
			}
		}
	}
	return n
}

// house is an actor system with everything of ours.
type house struct {
	system     *actor.ActorSystem
	dispatcher *base.Dispatcher
	ports      *base.Ports
	watcher    *actorstest.Inbox
}

func newHouse(t testing.TB) *house {
	t.Helper()
	system := newSystem()
	h := &house{
		system: system, dispatcher: base.NewDispatcher(), ports: base.NewPorts(system), watcher: actorstest.NewInbox(t, system),
	}
	t.Cleanup(h.dispatcher.Close)
	t.Cleanup(h.ports.Close)
	return h
}

// mailbox returns one with queries as its requests.
func (h *house) mailbox(requests int) *base.Mailbox {
	return base.NewMailbox(base.MailboxConfig{Requests: requests, IsRequest: isQuery, Refuse: refuse, System: h.system})
}

// spawn starts an actor, which is stopped when the test ends.
func (h *house) spawn(t testing.TB, m *base.Mailbox, produce actor.Producer, options ...actor.PropsOption) *actor.PID {
	t.Helper()
	options = append(options, actor.WithDispatcher(h.dispatcher), actor.WithMailbox(func() actor.Mailbox { return m }))
	pid := h.system.Root.Spawn(actor.PropsFromProducer(produce, options...))
	t.Cleanup(func() { h.stop(t, pid) })
	return pid
}

func (h *house) stop(t testing.TB, pid *actor.PID) {
	t.Helper()
	if _, alive := h.system.ProcessRegistry.Get(pid); alive {
		watch(h.watcher, h.system, pid)
		h.system.Root.Stop(pid)
		awaitTerminated(t, h.watcher, pid)
	}
}

// receive makes a producer of actors without state.
func receive(f func(actor.Context)) actor.Producer {
	return func() actor.Actor { return actor.ReceiveFunc(f) }
}

// ask asks a query with a background context.
func (h *house) ask(t testing.TB, pid *actor.PID, number int) any {
	t.Helper()
	reply, err := h.ports.Ask(context.Background(), pid, &query{number}, nil)
	if err != nil {
		t.Error(err)
	}
	return reply
}
