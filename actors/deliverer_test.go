package actors

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/partita-go/partita/messages"
)

// A wait that the lane has given up before the deliverer came to it must not begin: nobody
// would end it. The store is not even asked.
func TestWaitThatWasGivenUp(t *testing.T) {
	var wait atomic.Pointer[logWait]
	wait.Store(&logWait{generation: 2, ctx: context.Background()})
	d := &deliverer{config: &LaneConfig{}, wait: &wait}
	if m := d.await(&messages.AwaitLog{Generation: 1, Offset: 5}); m.Generation != 1 {
		t.Errorf("got %+v", m)
	}
}
