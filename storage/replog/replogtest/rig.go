package replogtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/replog"
)

// patience is how long anything may take.
const patience = time.Minute

// rig is a cluster whose nodes have replicas.
type rig struct {
	testing.TB
	ctx     context.Context
	cluster Cluster
	nodes   []*node
	// sent are the bodies of all appends, by what became of them.
	mu                     sync.Mutex
	there, never, doubtful []string
	bodies                 int
}

// node is a node that runs.
type node struct {
	id      replog.NodeID
	log     replog.Log
	replica *replica
}

func newRig(t testing.TB, c Cluster) *rig {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r := &rig{TB: t, ctx: ctx, cluster: c}
	for _, id := range c.Nodes() {
		n := &node{id: id, replica: newReplica()}
		r.nodes = append(r.nodes, n)
		r.start(n, replog.Position{})
	}
	t.Cleanup(func() {
		for _, n := range r.nodes {
			n.replica.open()
			if err := n.log.Close(); err != nil {
				t.Errorf("node %s: close: %v", n.id, err)
			}
		}
	})
	return r
}

// start runs a node, whose replica has what is up to a position.
func (r *rig) start(n *node, from replog.Position) {
	r.Helper()
	n.log = r.cluster.Log(r, n.id)
	if err := n.log.Start(from, n.replica); err != nil {
		r.Fatalf("node %s: start: %v", n.id, err)
	}
}

// stop closes a node.
func (r *rig) stop(n *node) {
	r.Helper()
	if err := n.log.Close(); err != nil {
		r.Fatalf("node %s: close: %v", n.id, err)
	}
}

// elect lets a node lead, and returns when it has begun.
func (r *rig) elect(n *node) {
	r.Helper()
	for leads := false; !leads; {
		r.cluster.Elect(r, n.id)
		r.await(n, "it leads, or another node does", func(l replog.Leadership) bool {
			leads = l.Term != 0
			return leads || l.Leader != "" && l.Leader != n.id
		})
	}
}

// await waits until a node's leadership is so.
func (r *rig) await(n *node, what string, so func(replog.Leadership) bool) {
	r.Helper()
	for {
		now, changed := n.log.Leadership()
		if so(now) {
			return
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			r.Fatalf("node %s: waited in vain for: %s; its state is %+v", n.id, what, now)
		}
	}
}

// body returns one that no other append has.
func (r *rig) body() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies++
	return fmt.Appendf(nil, "entry %d", r.bodies)
}

// append writes an entry behind the head that the node has, and notes what became of it.
func (r *rig) append(n *node) error { return r.appendAt(n, n.replica.end().Head, r.body()) }

func (r *rig) appendAt(n *node, prev uint64, body []byte) error {
	before, _ := n.log.Leadership()
	err := n.log.Append(r.ctx, prev, body)
	text := string(body)
	clear(body) // it is the caller's again
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.there = append(r.there, text)
		if !n.replica.has(text) {
			r.Errorf("node %s: %q is written, and not applied here", n.id, text)
		}
	case errors.Is(err, messages.ErrOutcomeUnknown):
		r.doubtful = append(r.doubtful, text)
		if now, _ := n.log.Leadership(); now.Term != 0 && now.Term == before.Term {
			r.Errorf("node %s: its outcome is unknown, and it leads on: %+v", n.id, now)
		}
	default:
		r.never = append(r.never, text)
	}
	return err
}

// must appends, each entry once. On a machine that stands still for a while a leader loses the others: it is elected again
// then.
func (r *rig) must(n *node, times int) {
	r.Helper()
	for range times {
		r.write(n, r.body)
	}
}

// write writes an entry, once.
func (r *rig) write(n *node, body func() []byte) {
	r.Helper()
	for prev := n.replica.end().Head; n.replica.end().Head == prev; {
		if err := r.appendAt(n, prev, body()); err != nil {
			r.again(n, err)
		}
	}
}

// verify asks whether a node leads that should.
func (r *rig) verify(n *node) {
	r.Helper()
	for {
		err := n.log.Verify(r.ctx)
		if err == nil {
			return
		}
		r.again(n, err)
	}
}

// again elects a node that has lost its leadership. Any other error ends the test.
func (r *rig) again(n *node, err error) {
	r.Helper()
	if !disturbed(err) {
		r.Fatalf("node %s: %v", n.id, err)
	}
	r.Logf("node %s: %v", n.id, err)
	r.elect(n)
}

// disturbed says that an error may be a busy machine's.
func disturbed(err error) bool {
	return errors.Is(err, replog.ErrNotOwner) || errors.Is(err, messages.ErrOutcomeUnknown)
}

// check ends a test: all nodes have the same, each acknowledged entry once, and no other but those in doubt.
func (r *rig) check() {
	r.Helper()
	if r.Failed() {
		return
	}
	end := uint64(0)
	for _, n := range r.nodes {
		end = max(end, n.replica.end().Head)
	}
	var first *node
	for _, n := range r.nodes {
		if now, _ := n.log.Leadership(); now.Stopped != nil {
			r.Errorf("node %s: its replica has stopped: %v", n.id, now.Stopped)
		}
		if !n.replica.await(r.ctx, end) {
			r.Fatalf("node %s: has %d entries, others have %d", n.id, n.replica.end().Head, end)
		}
		if first == nil {
			first = n
		} else if a, b := first.replica.all(), n.replica.all(); !slices.Equal(a, b) {
			r.Errorf("nodes %s and %s differ:\n%v\n%v", first.id, n.id, a, b)
		}
	}
	r.checkBodies(first.replica.all())
}

func (r *rig) checkBodies(all []applied) {
	r.Helper()
	times := make(map[string]int)
	for _, a := range all {
		times[a.body]++
	}
	for _, body := range r.there {
		if times[body] != 1 {
			r.Errorf("%q was acknowledged, and is there %d times", body, times[body])
		}
		delete(times, body)
	}
	for _, body := range r.doubtful {
		if times[body] > 1 {
			r.Errorf("%q is there %d times", body, times[body])
		}
		delete(times, body)
	}
	for body, n := range times {
		r.Errorf("%q was refused, or never written, and is there %d times", body, n)
	}
}

// applied is an entry as a replica was given it.
type applied struct {
	at   replog.Position
	body string
}

// replica remembers what it was given.
type replica struct {
	mu      sync.Mutex
	applied []applied
	// busy says that an entry is being applied; grown is closed, and made anew, with each.
	busy  bool
	grown chan struct{}
	// gate lets it go on if it is not nil, reached is closed when somebody waits there.
	gate, reached chan struct{}
	// fail is what the next entry ends with.
	fail error
}

func newReplica() *replica { return &replica{grown: make(chan struct{})} }

// Apply implements [replog.Replica].
func (r *replica) Apply(at replog.Position, body []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy {
		return fmt.Errorf("%w: two at a time", errOrder)
	}
	if gate := r.gate; gate != nil {
		r.busy = true
		close(r.reached)
		r.mu.Unlock()
		<-gate
		r.mu.Lock()
		r.busy = false
	}
	if r.fail != nil {
		return r.fail
	}
	var last replog.Position
	if n := len(r.applied); n > 0 {
		last = r.applied[n-1].at
	}
	if at.Head != last.Head+1 || at.Index <= last.Index {
		return fmt.Errorf("%w: %+v behind %+v", errOrder, at, last)
	}
	r.applied = append(r.applied, applied{at: at, body: string(bytes.Clone(body))})
	close(r.grown)
	r.grown = make(chan struct{})
	return nil
}

// shut lets the replica wait with its next entry until open. It returns what is closed when it does.
func (r *replica) shut() (reached <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate, r.reached = make(chan struct{}), make(chan struct{})
	return r.reached
}

func (r *replica) open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gate != nil {
		close(r.gate)
		r.gate = nil
	}
}

// failWith lets the next entry fail, and stop the replica.
func (r *replica) failWith(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = err
}

func (r *replica) all() []applied {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.applied)
}

func (r *replica) has(body string) bool {
	return slices.ContainsFunc(r.all(), func(a applied) bool { return a.body == body })
}

func (r *replica) end() replog.Position {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.applied) == 0 {
		return replog.Position{}
	}
	return r.applied[len(r.applied)-1].at
}

// forget drops what stands behind a head, as a crash may do, and returns where the replica is then.
func (r *replica) forget(head uint64) replog.Position {
	r.mu.Lock()
	r.applied = r.applied[:head]
	r.mu.Unlock()
	return r.end()
}

// await waits until the replica has so many entries.
func (r *replica) await(ctx context.Context, head uint64) bool {
	for {
		r.mu.Lock()
		n, grown := len(r.applied), r.grown
		r.mu.Unlock()
		if uint64(n) >= head {
			return true
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return false
		}
	}
}

// more returns what is closed with the next entry.
func (r *replica) more() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.grown
}
