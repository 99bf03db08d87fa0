package raftlog

import (
	"sync"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/storage/replog"
)

// doubter is a cluster that loses the answer of an append: a leader's links are cut in one direction when it stores an
// entry.
type doubter struct {
	*cluster
	sockets *sockets

	mu sync.Mutex
	// armed is what happens to nodes, met what has happened: true is that they are not answered, false that they are not
	// heard.
	armed, met map[replog.NodeID]bool
}

func newDoubter(t testing.TB, s *sockets) *doubter {
	d := &doubter{sockets: s, armed: make(map[replog.NodeID]bool), met: make(map[replog.NodeID]bool)}
	d.cluster = newCluster(t, s, func(id replog.NodeID, o *Options) {
		o.store = func(below raft.LogStore) raft.LogStore { return &tripwire{LogStore: below, d: d, id: id} }
	})
	return d
}

// Doubt implements [replogtest.Doubter].
func (d *doubter) Doubt(_ testing.TB, id replog.NodeID, there bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed[id] = there
}

// Elect heals: behind the election, so that the entry comes too late, unless that is the node that would not be heard.
func (d *doubter) Elect(t testing.TB, id replog.NodeID) {
	d.heal(func(node replog.NodeID, there bool) bool { return there || node == id })
	d.cluster.Elect(t, id)
	d.heal(func(replog.NodeID, bool) bool { return true })
}

func (d *doubter) heal(which func(replog.NodeID, bool) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, there := range d.met {
		if which(id, there) {
			delete(d.met, id)
			d.link(id, there, true)
		}
	}
}

// link cuts or heals what a node hears, or what others hear of it.
func (d *doubter) link(id replog.NodeID, there, whole bool) {
	for _, other := range nodes {
		switch {
		case other == id:
		case there:
			d.sockets.link(other, id, whole)
		default:
			d.sockets.link(id, other, whole)
		}
	}
}

// tripwire is a log store that cuts when a leader stores an entry of ours.
type tripwire struct {
	raft.LogStore
	d  *doubter
	id replog.NodeID
}

func (w *tripwire) StoreLogs(es []*raft.Log) error {
	w.d.cluster.mu.Lock()
	l := w.d.logs[w.id]
	w.d.cluster.mu.Unlock()
	if now, _ := l.Leadership(); now.Term != 0 && es[0].Type == raft.LogCommand {
		w.d.trip(w.id)
	}
	return w.LogStore.StoreLogs(es)
}

func (d *doubter) trip(id replog.NodeID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if there, ok := d.armed[id]; ok {
		delete(d.armed, id)
		d.met[id] = there
		d.link(id, there, false)
	}
}
