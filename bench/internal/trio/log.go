package trio

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"sync/atomic"

	"github.com/partita-go/partita/bench/internal/event"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/raftlog"
)

// maxTogether is how many events are one entry at most.
const maxTogether = 4096

// logNode is a node of partita's log alone: what callers append together is one entry, and nothing is made of it. What
// partita takes longer is what numbers, indexes, log.db and state.db cost.
type logNode struct {
	log     *raftlog.Log
	port    *raftlog.Port
	sources []*event.Source
	waiting chan logRequest
	ended   chan struct{}
	// head is where the log stands here, stored how many events it has.
	head, stored atomic.Uint64
}

// logRequest is one caller's event.
type logRequest struct {
	value []byte
	done  chan error
}

func newLog(ctx context.Context, c config) (system, error) {
	n := &logNode{sources: newSources(c), waiting: make(chan logRequest, c.Callers), ended: make(chan struct{})}
	var all []replog.NodeID
	for name := range c.Peers {
		all = append(all, replog.NodeID(name))
	}
	id := replog.NodeID(c.Name)
	o := raftlog.Options{Dir: filepath.Join(c.Dir, "raft-0"), Node: id, Failover: c.Failover}
	err := raftlog.Create(o, all)
	if err != nil {
		return nil, err
	}
	if n.port, err = raftlog.Listen(raftlog.PortOptions{
		Node: id, Listen: c.Peers[c.Name], Address: func(of replog.NodeID) string { return c.Peers[string(of)] },
	}); err != nil {
		return nil, err
	}
	o.Port = n.port
	if n.log, err = raftlog.New(o); err != nil {
		return nil, errors.Join(err, n.port.Close())
	}
	if err := n.log.Start(replog.Position{}, n); err != nil {
		return nil, errors.Join(err, n.port.Close())
	}
	go n.commit(context.WithoutCancel(ctx))
	return n, nil
}

// Apply implements [replog.Replica]: an entry begins with the number of its events.
func (n *logNode) Apply(at replog.Position, body []byte) error {
	n.head.Store(at.Head)
	n.stored.Add(binary.BigEndian.Uint64(body))
	n.log.Trim(at.Index)
	return nil
}

// commit makes an entry of all events that wait, one after the other.
func (n *logNode) commit(ctx context.Context) {
	defer close(n.ended)
	var together []logRequest
	for first := range n.waiting {
		body := append(make([]byte, 8), first.value...)
		together = append(together[:0], first)
		for len(together) < maxTogether && len(n.waiting) > 0 {
			next := <-n.waiting
			body, together = append(body, next.value...), append(together, next)
		}
		binary.BigEndian.PutUint64(body, uint64(len(together)))
		err := n.log.Append(ctx, n.head.Load(), body)
		for _, r := range together {
			r.done <- err
		}
	}
}

func (n *logNode) Append(_ context.Context, caller int, _ bool) error {
	source := n.sources[caller]
	source.Next()
	r := logRequest{value: source.Value(), done: make(chan error, 1)}
	n.waiting <- r
	return <-r.done
}

func (n *logNode) Leads() bool {
	now, _ := n.log.Leadership()
	return now.Term != 0
}

func (n *logNode) Stored(context.Context) (uint64, error) { return n.stored.Load(), nil }

func (n *logNode) Close(context.Context) error {
	close(n.waiting)
	<-n.ended
	return errors.Join(n.log.Close(), n.port.Close())
}

// newSources makes what the callers of a node append that knows no drafts.
func newSources(c config) []*event.Source {
	sources := make([]*event.Source, c.Callers)
	for i := range sources {
		sources[i] = event.NewSource(c.First+i, workspaces)
	}
	return sources
}
