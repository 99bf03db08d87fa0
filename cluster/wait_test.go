package cluster

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/storage/replog"
)

// refusing counts what is refused since a request lane is full.
type refusing struct {
	net.Conn
	count *atomic.Int32
}

// Write implements [net.Conn].
func (c *refusing) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte("mailbox-full")) {
		c.count.Add(1)
	}
	return c.Conn.Write(text)
}

// TestForwardedAppendWaits for a place in the request lane of the owner, if it is to wait.
func TestForwardedAppendWaits(t *testing.T) {
	t.Parallel()
	refused := new(atomic.Int32)
	r := newRig(t, func(_ replog.NodeID, o *Options) {
		o.Application.RequestLane, o.Application.Settings.TransactionLimit = 1, patience
		below := o.wrap
		o.wrap = func(peer replog.NodeID, c net.Conn) net.Conn { return &refusing{below(peer, c), refused} }
	})
	owner := r.owner()
	asked := r.others(owner)[0]
	app, err := owner.App()
	if err != nil {
		t.Fatal(err)
	}
	s, err := app.SequencerOf(1)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := s.Start(r.ctx, shop, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	const callers = 3 // one has the place in the lane, the others none
	answers := make(chan error, callers)
	for i := range callers {
		go func() {
			_, err := asked.Append(ctx, to(1, i), one(i))
			answers <- err
		}()
	}
	for refused.Load() < 2*callers {
		select {
		case err := <-answers:
			t.Fatalf("it has not waited: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err := tx.Cancel(r.ctx); err != nil {
		t.Error(err)
	}
	for range callers {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}
