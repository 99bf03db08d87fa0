package quiet_test

import (
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/internal/quiet"
)

// Every actor is found by its name, those too that a system begins with, and none that was not there or has ended.
func TestActorsAreFoundByName(t *testing.T) {
	system := quiet.NewSystem()
	defer system.Shutdown()
	for _, name := range []string{"deadletter", "eventstream"} {
		if _, found := system.ProcessRegistry.GetLocal(name); !found {
			t.Errorf("got no %s", name)
		}
	}
	nothing := actor.PropsFromFunc(func(actor.Context) {})
	for i := range 1000 {
		name := fmt.Sprint("actor-", i)
		if _, found := system.ProcessRegistry.GetLocal(name); found {
			t.Fatalf("%s was there before", name)
		}
		pid, err := system.Root.SpawnNamed(nothing, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, found := system.ProcessRegistry.Get(pid); !found {
			t.Fatalf("got no %s", name)
		}
		if err := system.Root.StopFuture(pid).Wait(); err != nil {
			t.Fatal(err)
		}
		if _, found := system.ProcessRegistry.Get(pid); found {
			t.Fatalf("%s has ended, and is there", name)
		}
	}
}
