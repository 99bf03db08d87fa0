package cluster

import (
	"fmt"
	"sync"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/replog"
)

// TestAppendsAtEachNode appends at all nodes, of which one owns all.
func TestAppendsAtEachNode(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	owner := r.owner()
	var all sync.WaitGroup
	for i, n := range r.others(nil) {
		all.Go(func() {
			for k := range 30 {
				r.append(n, messages.WSID(1+k%3), 1000*i+k+1)
			}
		})
	}
	all.Wait()
	for ws := range messages.WSID(3) {
		for _, n := range r.others(nil) {
			if err := n.Reader().AwaitWLog(replog.Local(r.ctx), ws+1, 30); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range r.others(owner) {
			if got, want := fmt.Sprint(r.bodies(n, ws+1)), fmt.Sprint(r.bodies(owner, ws+1)); got != want {
				t.Errorf("node %s has %s, the owner %s", n.o.Node, got, want)
			}
		}
	}
	r.soon(func() error {
		seen := make(map[string]bool)
		for ws := range messages.WSID(3) {
			for e, err := range r.owner().Reader().WLog(r.ctx, ws+1, 1) {
				if err != nil {
					return err
				}
				if seen[string(e.Body)] {
					t.Errorf("twice: %s", e.Body)
				}
				seen[string(e.Body)] = true
			}
		}
		if len(seen) != 90 {
			t.Errorf("got %d events, want 90", len(seen))
		}
		return nil
	})
}
