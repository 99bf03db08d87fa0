package cluster

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/storage/replog"
)

// TestNodesAreAddedAndRemoved replaces a node that is lost by one that is new, while appends go on. It gives no number of a
// generator that was given.
func TestNodesAreAddedAndRemoved(t *testing.T) {
	t.Parallel()
	const added replog.NodeID = "n4"
	var known atomic.Bool
	r := newRig(t, func(id replog.NodeID, o *Options) {
		if known.Load() {
			o.Peers[added] = "127.0.0.1:1"
		}
		if id == added {
			o.Create, o.Join = false, true
		}
	})
	w := r.serve()
	writers := r.write(true)
	writers.await(2)
	owner := r.owner()
	generators := numbers(r)
	for _, n := range r.others(nil) {
		generators.must(n)
	}
	lost := r.others(owner)[0].o.Node
	asked := r.others(owner)[1].o.Node
	w.has(http.StatusBadRequest, asked, http.MethodPost, addPath, `{"node": "n4"}`)
	known.Store(true)
	for _, id := range names {
		r.stop(id)
		if id != lost {
			r.start(id)
		}
		r.owner()
	}
	w.eventually(asked, removePath, lost)
	n := r.start(added)
	t.Cleanup(func() {
		r.stop(added)
		r.verify(added)
	})
	w.eventually(asked, addPath, added)
	writers.await(2)
	var status StatusJSON
	if err := json.Unmarshal([]byte(w.has(http.StatusOK, asked, http.MethodGet, clusterPath, "")), &status); err != nil {
		t.Fatal(err)
	}
	for _, m := range status.Members {
		if m.Votes != (m.Node != lost) {
			t.Errorf("got %+v", m)
		}
	}
	for was := r.node(asked); !n.Status().Serves && r.ctx.Err() == nil; <-time.After(5 * time.Millisecond) {
		w.ask(was.o.Node, http.MethodPost, transferPath, `{"to": "n4"}`)
	}
	generators.must(n) // its ids.db is the owner's
	writers.await(2)
	writers.end()
	if got, want := r.bodies(n, 1), r.bodies(r.node(asked), 1); !slices.Equal(got, want) {
		t.Errorf("got %d events, want %d, or they differ", len(got), len(want))
	}
	if got := w.has(http.StatusBadRequest, asked, http.MethodPost, removePath, `{"node": "`+string(lost)+`"}`); got == "" {
		t.Error("nothing is said")
	}
}

// eventually asks for a change until it is made: who leads may change meanwhile.
func (w *web) eventually(id replog.NodeID, path string, about replog.NodeID) {
	w.Helper()
	var status int
	var content string
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		status, content = w.ask(id, http.MethodPost, path, `{"node": "`+string(about)+`"}`)
		if status == http.StatusOK {
			return
		}
	}
	w.Fatalf("node %s: %s of %s: got %d, %s", id, path, about, status, content)
}
