package cluster

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/raftlog/links"
	"github.com/partita-go/partita/storage/verify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	// patience is how long anything may take; failover is so long that a busy machine seldom elects somebody by itself.
	patience = 60 * time.Second
	failover = time.Second

	shop    messages.WSKind = 1
	invoice messages.SeqID  = 16
)

var (
	verbose = flag.Bool("nodes", false, "print the nodes' lines")
	names   = []replog.NodeID{"n1", "n2", "n3"}
)

func descriptor() messages.Descriptor {
	return messages.Descriptor{
		Application: "shops", Partitions: 4,
		Kinds: []messages.Kind{{ID: shop, Name: "shop", Sequences: []messages.Sequence{{ID: invoice, Name: "invoices", Initial: 1}}}},
	}
}

// rig is three nodes in one process.
type rig struct {
	testing.TB
	ctx    context.Context
	dir    string
	links  links.Links
	change func(replog.NodeID, *Options)

	// standing is how the process stood still.
	standing standing

	mu        sync.Mutex
	addresses map[replog.NodeID]string
	nodes     map[replog.NodeID]*Node
}

// newRig starts new nodes. When the test ends, they are closed, and what they have is verified.
func newRig(t testing.TB, change func(replog.NodeID, *Options)) *rig {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	r := &rig{
		TB: t, ctx: ctx, dir: t.TempDir(), change: change,
		addresses: make(map[replog.NodeID]string), nodes: make(map[replog.NodeID]*Node),
	}
	go r.standing.watch(ctx)
	t.Cleanup(func() {
		defer cancel()
		for _, id := range names {
			for _, other := range names {
				r.links.Heal(id, other)
			}
		}
		for _, id := range names {
			r.stop(id)
		}
		for _, id := range names {
			r.verify(id)
		}
	})
	for _, id := range names {
		r.start(id)
	}
	return r
}

// start starts a node. It listens at a new address each time, so that no other program can have taken it.
func (r *rig) start(id replog.NodeID) *Node {
	r.Helper()
	n, err := r.open(id, nil)
	if err != nil {
		r.Fatalf("node %s: %v", id, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addresses[id], r.nodes[id] = n.port.Addr().String(), n
	return n
}

// open opens a node as start does, with other options.
func (r *rig) open(id replog.NodeID, change func(*Options)) (*Node, error) {
	o := Options{
		Node: id, Peers: make(map[replog.NodeID]string), Dir: filepath.Join(r.dir, string(id)), Create: true,
		Application: partition.Application{Descriptor: descriptor()}, Store: bolt.Options{MmapSize: 32 << 20},
		Failover: failover, Listen: "127.0.0.1:0", wrap: r.links.Wrap(id),
		address: func(id replog.NodeID) string {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.addresses[id]
		},
	}
	for _, name := range names {
		o.Peers[name] = "127.0.0.1:1"
	}
	if *verbose {
		o.Logger, _ = zap.NewDevelopment()
		o.Logger = o.Logger.Named(string(id))
	}
	if r.change != nil {
		r.change(id, &o)
	}
	if change != nil {
		change(&o)
	}
	return Start(r.ctx, o)
}

func (r *rig) node(id replog.NodeID) *Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodes[id]
}

func (r *rig) stop(id replog.NodeID) {
	r.Helper()
	n := r.node(id)
	if n == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		r.Errorf("node %s: close: %v", id, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.nodes, id)
}

// verify checks the files of a node that is closed.
func (r *rig) verify(id replog.NodeID) {
	r.Helper()
	stores, err := filepath.Glob(filepath.Join(r.dir, string(id), "shard-*"))
	if err != nil || len(stores) == 0 {
		r.Errorf("node %s: got stores %q, %v", id, stores, err)
	}
	for _, dir := range stores {
		report, err := bolt.Verify(context.Background(), dir, verify.Options{})
		if err != nil {
			r.Errorf("node %s: verify %s: %v", id, dir, err)
			continue
		}
		for _, f := range report.Faults {
			r.Errorf("node %s: verify %s: %v", id, dir, f)
		}
	}
}

// owner waits until the application runs on a node that is not cut off, and returns that.
func (r *rig) owner(not ...replog.NodeID) *Node {
	r.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		for _, id := range names {
			n := r.node(id)
			if n == nil || len(not) > 0 && id == not[0] {
				continue
			}
			if _, err := n.App(); err == nil {
				return n
			}
		}
	}
	r.Fatal("the application runs nowhere")
	return nil
}

// soon repeats a check until it passes: a node may not have heard yet who leads, or nobody does for a moment.
func (r *rig) soon(check func() error) {
	r.Helper()
	for end := time.Now().Add(patience); ; <-time.After(5 * time.Millisecond) {
		if err := check(); err == nil {
			return
		} else if time.Now().After(end) {
			r.Fatal(err)
		}
	}
}

// others returns the nodes that run, but for one.
func (r *rig) others(not *Node) (all []*Node) {
	for _, id := range names {
		if n := r.node(id); n != nil && n != not {
			all = append(all, n)
		}
	}
	return all
}

// isolate cuts a node off from all others, both ways.
func (r *rig) isolate(id replog.NodeID) {
	for _, other := range names {
		if other != id {
			r.links.Cut(id, other)
			r.links.Cut(other, id)
		}
	}
}

func (r *rig) heal(id replog.NodeID) {
	for _, other := range names {
		r.links.Heal(id, other)
		r.links.Heal(other, id)
	}
}

func id(n int) (id messages.DedupID) {
	copy(id[:], fmt.Sprintf("%016d", n))
	return id
}

func to(ws messages.WSID, n int) partition.AppendTo {
	return partition.AppendTo{Workspace: ws, Kind: shop, DedupID: id(n), Wait: true}
}

func one(n int) partition.Draft {
	return partition.Draft{Wanted: []partition.Wanted{{Seq: invoice}}, Body: fmt.Appendf(nil, `{"n":%d}`, n)}
}

// append appends with an id, which must succeed.
func (r *rig) append(n *Node, ws messages.WSID, i int) *partition.Appended {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	done, err := n.Append(ctx, to(ws, i), one(i))
	if err != nil {
		r.Fatalf("node %s: append %d: %v", n.o.Node, i, err)
	}
	return done
}

// bodies returns what a node has of a workspace.
func (r *rig) bodies(n *Node, ws messages.WSID) (all []string) {
	r.Helper()
	for e, err := range n.Reader().WLog(replog.Local(r.ctx), ws, 1) {
		if err != nil {
			r.Fatalf("node %s: %v", n.o.Node, err)
		}
		all = append(all, string(e.Body))
	}
	return all
}
