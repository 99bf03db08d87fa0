package actors_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/internal/quiet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newSystem returns a silent actor system, which needs no shutting down.
func newSystem() *actor.ActorSystem {
	return quiet.NewSystem()
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

// house is an actor system with everything of ours.
type house struct {
	system     *actor.ActorSystem
	dispatcher *actors.Dispatcher
	ports      *actors.Ports
}

func newHouse(t testing.TB) *house {
	t.Helper()
	system := newSystem()
	h := &house{system: system, dispatcher: actors.NewDispatcher(), ports: actors.NewPorts(system)}
	t.Cleanup(h.dispatcher.Close)
	t.Cleanup(h.ports.Close)
	return h
}
