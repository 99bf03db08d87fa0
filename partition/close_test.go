package partition_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// looked is a context that ends when somebody looks for the nth time whether it has.
type looked struct {
	context.Context
	mu    sync.Mutex
	looks int
	end   context.CancelFunc
}

func (l *looked) Err() error {
	l.mu.Lock()
	if l.looks--; l.looks == 0 {
		l.end()
	}
	l.mu.Unlock()
	return l.Context.Err()
}

// Whenever the context of a Close or Undeploy ends, its error is among the answer if something is still deployed, and only
// then. So it is where a handler hangs, too.
func TestStopSaysWhatIsStillDeployed(t *testing.T) {
	for name, stop := range map[string]func(*house, context.Context) error{
		"close":    func(h *house, ctx context.Context) error { return h.parts.Close(ctx) },
		"undeploy": func(h *house, ctx context.Context) error { return h.parts.Undeploy(ctx, "one") },
	} {
		t.Run(name, func(t *testing.T) {
			for n, ended := 1, true; ended; n++ {
				h := newHouse(t, partition.Options{})
				end := h.hang("one")
				if name == "close" {
					h.deploy(billing("two"), h.newStore(billing("two").Descriptor))
				}
				ctx, cancel := context.WithCancel(h.ctx)
				err := stop(h, &looked{Context: ctx, looks: n, end: cancel})
				ended = ctx.Err() != nil
				cancel()
				deployed := len(h.parts.Apps()) > 0
				if errors.Is(err, context.Canceled) != deployed || !deployed && !errors.Is(err, partition.ErrNotClean) {
					t.Errorf("look %d: got %v, still deployed: %v", n, err, deployed)
				}
				end()
			}
		})
	}
}

// hang deploys an application that has not long to stop, and a handler of which hangs until end.
func (h *house) hang(name string) (end func()) {
	h.t.Helper()
	app := billing(name)
	app.Settings.StopLimit = time.Millisecond
	a := h.deploy(app, h.newStore(app.Descriptor))
	begun, released := make(chan struct{}), make(chan struct{})
	p, err := a.SpawnAppendProcessor(func(context.Context, *partition.DraftContext) error {
		close(begun)
		<-released
		return nil
	})
	h.check(err)
	var handling sync.WaitGroup
	handling.Go(func() { _, _ = p.Execute(h.ctx, messages.Command{Workspace: 1, Kind: shop}) })
	soon(h, "the handler", begun)
	return func() {
		close(released)
		handling.Wait()
	}
}
