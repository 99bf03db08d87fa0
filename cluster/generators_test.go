package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/storage/replog"
)

// numbered are generators of launch 7 that have a number, which no other one has.
type numbered struct {
	*rig
	mu    sync.Mutex
	given map[uint32]bool
	by    map[replog.NodeID]int
}

func numbers(r *rig) *numbered {
	return &numbered{rig: r, given: make(map[uint32]bool), by: make(map[replog.NodeID]int)}
}

// take numbers a generator at a node.
func (g *numbered) take(n *Node) error {
	ctx, cancel := context.WithTimeout(g.ctx, patience)
	defer cancel()
	number, err := n.NextGenerator(ctx, 7)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.given[number] || number == 0 {
		g.Errorf("node %s: number %d was given before", n.o.Node, number)
	}
	g.given[number] = true
	g.by[n.o.Node]++
	return nil
}

// must numbers a generator at a node.
func (g *numbered) must(n *Node) {
	g.Helper()
	if err := g.take(n); err != nil {
		g.Fatalf("node %s: %v", n.o.Node, err)
	}
}

// await waits until each of some nodes has numbered some more.
func (g *numbered) await(all []*Node) {
	g.Helper()
	count := func(n *Node) int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.by[n.o.Node]
	}
	for _, n := range all {
		for goal, end := count(n)+3, time.Now().Add(patience); count(n) < goal; <-time.After(5 * time.Millisecond) {
			if time.Now().After(end) {
				g.Fatalf("node %s numbers no generator", n.o.Node)
			}
		}
	}
}

// TestGeneratorsOfNodes are numbered at all nodes at the same time, while the owner is cut off, closed and started again: each
// gets one. None has the number of another one, nor after all nodes were started again.
func TestGeneratorsOfNodes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := numbers(r)
	done := make(chan struct{})
	var taking sync.WaitGroup
	for _, id := range names {
		taking.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(5 * time.Millisecond):
				}
				n := r.node(id)
				if n == nil {
					continue
				}
				if err := g.take(n); err != nil && n.running.Err() == nil { // else it was closed meanwhile
					t.Errorf("node %s: %v", id, err)
				}
			}
		})
	}
	end := sync.OnceFunc(func() {
		close(done)
		taking.Wait()
	})
	defer end()
	was := r.owner()
	g.await(r.others(nil))
	r.isolate(was.o.Node)
	r.owner(was.o.Node)
	g.await(r.others(was))
	r.heal(was.o.Node)
	g.await(r.others(nil))
	was = r.owner()
	r.stop(was.o.Node)
	r.owner()
	g.await(r.others(nil))
	r.start(was.o.Node)
	g.await(r.others(nil))
	end()

	for _, id := range names {
		r.stop(id)
	}
	for _, id := range names {
		r.start(id)
	}
	given := make(map[ids.DecimalID]bool)
	for _, n := range r.others(nil) {
		g.must(n)
		made, err := ids.NewDecimalGenerator(r.ctx, n, 8)
		if err != nil {
			t.Fatal(err)
		}
		id, err := made.Next(r.ctx)
		if err != nil || given[id] {
			t.Errorf("node %s: got id %v, %v", n.o.Node, id, err)
		}
		given[id] = true
	}
	t.Logf("%d generators", len(g.given))
}

// TestGeneratorsOfShards are numbered by the first one, from any node, and by no other.
func TestGeneratorsOfShards(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharded)
	owners := r.spread()
	g := numbers(r)
	body, err := json.Marshal(generator{Launch: 7})
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range owners {
		n := r.node(id)
		g.must(n)
		g.must(n)
		if i == 0 {
			continue
		}
		if _, err := n.Shards()[i].Store().NextGenerator(r.ctx, 7); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("shard %d: got %v, want ErrUnsupported", i, err)
		}
		var told generator
		err := r.node(owners[0]).shards[i].exchange(r.ctx, http.MethodPost, id, generatorPath, body, &told)
		if err == nil {
			t.Errorf("shard %d: got %+v", i, told)
		}
	}
}

// answering has another answer than the owner's to who numbers a generator, for as many times as there are any.
type answering struct {
	net.Conn
	answers chan string
}

// Write implements [net.Conn].
func (a *answering) Write(text []byte) (int, error) {
	if !bytes.HasPrefix(text, []byte("HTTP/1.1 200")) || !bytes.Contains(text, []byte(`{"launch":7,"number":`)) {
		return a.Conn.Write(text)
	}
	select {
	case body := <-a.answers:
		_, err := fmt.Fprintf(a.Conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		return len(text), err
	default:
		return a.Conn.Write(text)
	}
}

// TestAnswersToGenerators: an answer that says no number is asked for again, and a launch that cannot be is not asked for.
func TestAnswersToGenerators(t *testing.T) {
	t.Parallel()
	all := []string{"<html>", `{"launch":7,"number":0}`, `{"launch":8,"number":5}`, `{"number":5}`, ""}
	answers := make(chan string, len(all))
	r := newRig(t, func(_ replog.NodeID, o *Options) {
		below := o.wrap
		o.wrap = func(peer replog.NodeID, c net.Conn) net.Conn { return &answering{below(peer, c), answers} }
	})
	g := numbers(r)
	n := r.others(r.owner())[0]
	g.must(n)
	for _, a := range all {
		answers <- a
	}
	// On a machine that stands still for a while the node that is asked may be the owner itself.
	for end := time.Now().Add(patience); len(answers) > 0; {
		if time.Now().After(end) {
			t.Fatalf("%d answers were not read", len(answers))
		}
		n = r.others(r.owner())[0]
		g.must(n)
	}
	for _, asked := range []*Node{n, r.owner()} {
		if _, err := asked.NextGenerator(r.ctx, ids.MaxLaunch+1); !errors.Is(err, ids.ErrLaunch) {
			t.Errorf("got %v, want ErrLaunch", err)
		}
	}
	for _, body := range []string{`{"launch":100000}`, "<html>"} {
		var told generator
		err := n.shards[0].exchange(r.ctx, http.MethodPost, r.owner().o.Node, generatorPath, []byte(body), &told)
		if err == nil || !strings.Contains(err.Error(), "cannot be understood") {
			t.Errorf("%s: got %+v, %v", body, told, err)
		}
	}
}
