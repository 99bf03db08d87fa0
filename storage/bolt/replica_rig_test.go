package bolt

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/memory"
)

func init() { followRest = time.Hour }

// replicas are the stores of several nodes that have one log, and crash.
type replicas struct {
	cluster *memory.Cluster
	nodes   []*replicaNode
	options Options
	// untrimmed says that nothing is forgotten by the log of who is opened.
	untrimmed bool
}

// untrimmed is a log that forgets nothing.
type untrimmed struct{ replog.Log }

func (untrimmed) Trim(uint64) {}

// replicaNode is a node with a store. The store is nil while it does not run.
type replicaNode struct {
	id    replog.NodeID
	dir   string
	log   *memory.Log
	store *Store
}

// openReplicas opens new stores of so many nodes. The first one leads.
func openReplicas(t testing.TB, nodes int, d messages.Descriptor, o Options) *replicas {
	t.Helper()
	r := &replicas{options: o}
	ids := make([]replog.NodeID, nodes)
	for i := range ids {
		ids[i] = replog.NodeID(rune('a' + i))
	}
	r.cluster = memory.NewCluster(7, ids...)
	for _, id := range ids {
		r.nodes = append(r.nodes, &replicaNode{id: id, dir: filepath.Join(t.TempDir(), "store")})
	}
	r.start(t, d)
	r.lead(t, 0)
	return r
}

// start opens the stores that are not open.
func (r *replicas) start(t testing.TB, d messages.Descriptor) {
	t.Helper()
	for _, n := range r.nodes {
		if n.store == nil {
			r.open(t, n, d)
		}
	}
}

func (r *replicas) open(t testing.TB, n *replicaNode, d messages.Descriptor) {
	t.Helper()
	o := r.options
	o.MmapSize, o.Create = 32<<10, true
	n.log = r.cluster.Log(n.id)
	o.Log = n.log
	if r.untrimmed {
		o.Log = untrimmed{n.log}
	}
	var err error
	if n.store, err = Open(t.Context(), n.dir, d, o); err != nil {
		t.Fatalf("node %s: %v", n.id, err)
	}
	s := n.store
	t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
}

// lead lets a node lead, and returns its store when it does.
func (r *replicas) lead(t testing.TB, node int) *Store {
	t.Helper()
	n := r.nodes[node]
	if err := r.cluster.Lead(n.id); err != nil {
		t.Fatal(err)
	}
	for {
		now, changed := n.log.Leadership()
		if now.Term != 0 {
			return n.store
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("node %s does not lead: %+v", n.id, now)
		}
	}
}

// stop closes the stores that are open.
func (r *replicas) stop(t testing.TB) {
	t.Helper()
	for _, n := range r.nodes {
		r.close(t, n)
	}
}

func (r *replicas) close(t testing.TB, n *replicaNode) {
	t.Helper()
	if n.store != nil {
		if err := n.store.Close(t.Context()); err != nil {
			t.Fatalf("node %s: %v", n.id, err)
		}
		n.store = nil
	}
}

// crash cuts off the owner until another node leads, which flushes as far as the owner had, since each has projections of
// its own. Then the owner comes back as who it was when it was cut off. It returns the new owner's store.
func (r *replicas) crash(t testing.TB, owner *Store) *Store {
	t.Helper()
	at := slices.IndexFunc(r.nodes, func(n *replicaNode) bool { return n.store == owner })
	was := r.nodes[at]
	r.cluster.Cut(was.id)
	s := r.lead(t, (at+1)%len(r.nodes))
	for i := range s.partitions {
		if err := s.flushTo(t.Context(), &s.partitions[i], owner.partitions[i].checkpointNow()); err != nil {
			t.Fatal(err)
		}
	}
	d := owner.Descriptor()
	r.close(t, was)
	r.cluster.Heal(was.id)
	r.open(t, was, d)
	return s
}

func (p *partition) checkpointNow() messages.PLogOffset {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.checkpoint
}

// flushTo flushes a partition up to a checkpoint, without a caller.
func (s *Store) flushTo(ctx context.Context, p *partition, checkpoint messages.PLogOffset) error {
	if p.checkpointNow() >= checkpoint {
		return nil
	}
	f := p.derivedFlush()
	f.to = checkpoint
	return queue.HandOver(ctx, s.flushes, f, &f.Ticket, s.closing, s.flushed)
}

// replicaFactory makes stores that are replicas, for the suite.
type replicaFactory struct {
	nodes int
	mu    sync.Mutex
	of    map[storage.Store]*replicas
}

func newReplicaFactory(nodes int) *replicaFactory {
	return &replicaFactory{nodes: nodes, of: make(map[storage.Store]*replicas)}
}

func (f *replicaFactory) Open(t testing.TB, d messages.Descriptor) storage.Store {
	return f.OpenLimited(t, d, 0)
}

func (f *replicaFactory) OpenLimited(t testing.TB, d messages.Descriptor, events int) storage.Store {
	r := openReplicas(t, f.nodes, d, Options{TailEvents: events})
	return f.note(r.nodes[0].store, r)
}

// SampleLevels: what a store does at each trust level is compared with the model where it is alone.
func (f *replicaFactory) SampleLevels() {}

// Reopen closes all nodes, and opens them again.
func (f *replicaFactory) Reopen(t testing.TB, s storage.Store) storage.Store {
	r, d := f.replicasOf(s), s.Descriptor()
	at := slices.IndexFunc(r.nodes, func(n *replicaNode) bool { return n.store == s })
	r.stop(t)
	r.start(t, d)
	return f.note(r.lead(t, at), r)
}

func (f *replicaFactory) note(s *Store, r *replicas) storage.Store {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[s] = r
	return s
}

func (f *replicaFactory) replicasOf(s storage.Store) *replicas {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[s]
}
