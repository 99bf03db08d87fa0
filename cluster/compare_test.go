package cluster

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// TestNodesAreCompared under load, and without one of them.
func TestNodesAreCompared(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.serve()
	writers := r.write(true)
	writers.await(3)
	r.compared(w, 3)
	r.stop(r.others(r.owner())[0].o.Node)
	r.compared(w, 2)
	writers.end()
	c := Comparison{Members: []PositionJSON{{Node: "n1", Sum: "1"}, {Node: "n2", Unknown: "away"}, {Node: "n3", Sum: "2"}}}
	if c.judge(); c.Same || c.Compared != 2 {
		t.Errorf("got %+v, want two that differ", c)
	}
}

// compared waits until so many nodes are compared, and checks that they have the same.
func (r *rig) compared(w *web, want int) {
	r.Helper()
	var c Comparison
	for end := time.Now().Add(patience); ; <-time.After(5 * time.Millisecond) {
		content := w.has(http.StatusOK, r.owner().o.Node, http.MethodGet, comparePath, "")
		if err := json.Unmarshal([]byte(content), &c); err != nil {
			r.Fatal(err)
		}
		if !c.Same {
			r.Fatalf("nodes differ: %+v", c)
		}
		if c.Compared == want && c.Head > 0 && len(c.Members) == len(names) {
			return
		}
		if time.Now().After(end) {
			r.Fatalf("got %+v, want %d nodes compared", c, want)
		}
	}
}
