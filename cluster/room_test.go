package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
)

// rooms say which nodes have none.
type rooms struct {
	mu   sync.Mutex
	full map[replog.NodeID]bool
	// asked counts how often each was asked.
	asked map[replog.NodeID]int
}

func (r *rooms) change(id replog.NodeID, o *Options) {
	o.full = func(*bolt.Store) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked[id]++
		if r.full[id] {
			return fmt.Errorf("%w: node %s", storage.ErrFull, id)
		}
		return nil
	}
}

func (r *rooms) fill(ids ...replog.NodeID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		r.full[id] = true
	}
}

// await waits until a node was asked so many times more.
func (r *rooms) await(t *testing.T, id replog.NodeID, more int) {
	t.Helper()
	count := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.asked[id]
	}
	goal := count() + more
	for end := time.Now().Add(patience); count() < goal; <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("node %s does not look for room", id)
		}
	}
}

// TestOwnerWithoutRoom hands over to the one node that has room, and leads on when none has.
func TestOwnerWithoutRoom(t *testing.T) {
	t.Parallel()
	const longFailover = 5 * time.Second // so that a busy machine seldom elects somebody
	rooms := &rooms{full: make(map[replog.NodeID]bool), asked: make(map[replog.NodeID]int)}
	r := newRig(t, func(id replog.NodeID, o *Options) {
		rooms.change(id, o)
		o.Failover = longFailover
	})
	w := r.serve()
	was := r.owner()
	r.append(was, 1, 1)
	others := r.others(was)
	rooms.fill(others[0].o.Node, was.o.Node)
	next := others[1]
	r.standing.begin()
	for end := time.Now().Add(patience); !next.Status().Serves; <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("node %s does not lead: %+v", next.o.Node, was.Status())
		}
	}
	r.append(was, 1, 2)
	var status StatusJSON
	if err := json.Unmarshal([]byte(w.has(http.StatusOK, next.o.Node, http.MethodGet, clusterPath, "")), &status); err != nil {
		t.Fatal(err)
	}
	for _, m := range status.Members {
		if (m.Full == "") != (m.Node == others[1].o.Node) {
			t.Errorf("got %+v", m)
		}
	}
	rooms.fill(others[1].o.Node)
	if err := next.Status().Full; err == nil {
		t.Error("the node that leads does not say that it has no room")
	}
	if all := next.shards[0].withRoom(r.ctx); len(all) > 0 {
		t.Errorf("nodes %q have room", all)
	}
	rooms.await(t, next.o.Node, 3)
	r.append(was, 1, 3)
	if s := next.Status(); !s.Serves && !r.standing.long(longFailover) {
		t.Errorf("it does not lead on: %+v", s)
	}
}
