package cluster

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/raftlog"
)

// Node is one of several that have an application together. It is safe for concurrent use.
type Node struct {
	o       Options
	port    *raftlog.Port
	shards  []*Shard
	peers   *peers
	handler http.Handler
	// all is what is here of all shards, nil if there is one.
	all atomic.Pointer[whole]

	// serving ends with Stop, when streams have to.
	serving     context.Context
	stopServing context.CancelFunc
	// running ends when the node is closed.
	running context.Context
	stop    context.CancelFunc

	mu sync.Mutex
	// application is what the next reign deploys.
	application partition.Application

	// closing has one place: whoever is in it closes, and has what is below.
	closing chan struct{}
	closed  bool
	answer  error
}

// Start opens a node's store and its part of the log, and returns: it does not wait until somebody leads. From then on the
// node follows whoever leads; when it leads itself, it deploys the application.
//
// Errors: ErrOptions; those of [raftlog.Create], [raftlog.Listen] and [bolt.Open]: ErrNotFound of package storage if there
// is no store and Options.Create is not set, ErrAhead, ErrBehind and ErrDiverged of package replog if the directory cannot
// go on.
func Start(ctx context.Context, o Options) (*Node, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	n := &Node{o: o, application: o.Application, closing: make(chan struct{}, 1)}
	n.serving, n.stopServing = context.WithCancel(context.Background())
	n.running, n.stop = context.WithCancel(context.Background())
	for i := range o.Shards {
		n.shards = append(n.shards, newShard(n, i))
	}
	if err := n.open(ctx); err != nil {
		return nil, errors.Join(err, n.Close(context.WithoutCancel(ctx)))
	}
	return n, nil
}

// open opens all that the node has.
func (n *Node) open(ctx context.Context) (err error) {
	if err := n.settleShards(); err != nil {
		return err
	}
	for _, s := range n.shards {
		if err := s.create(); err != nil {
			return err
		}
	}
	if n.port, err = raftlog.Listen(n.o.portOptions()); err != nil {
		return err
	}
	if n.peers, err = n.startPeers(); err != nil {
		return err
	}
	for _, s := range n.shards {
		if err := s.open(ctx); err != nil {
			return err
		}
	}
	n.handler = n.newHandler()
	return nil
}

// Reader returns a reader of this node's store: the same until the node was mended, see [Shard.Store]. Reads with a context of
// [replog.Local] take what this node has, a prefix, perhaps late. All others take what anybody was told to be there: they
// return replog.ErrNotOwner unless this node leads, which it asks the others. To wait, as by AwaitWLog, is local on every
// node. If there are several shards it reads all, each partition from its own: a feed of all partitions is local then, unless
// this node leads all shards.
func (n *Node) Reader() *partition.Reader {
	if w := n.all.Load(); w != nil {
		return w.reader
	}
	return n.shards[0].Reader()
}

// Store is [Shard.Store], of the first shard: see [Node.Shards] for others.
func (n *Node) Store() *bolt.Store { return n.shards[0].Store() }

// App is [Shard.App]. ErrShards if there are several: see [Node.AppOf].
func (n *Node) App() (*partition.App, error) {
	s, err := n.only()
	if err != nil {
		return nil, err
	}
	return s.App()
}

// Leader is [Shard.Leader], of the first shard.
func (n *Node) Leader() replog.NodeID { return n.shards[0].Leader() }

// Status is [Shard.Status], of the first shard.
func (n *Node) Status() Status { return n.shards[0].Status() }

// Transfer is [Shard.Transfer]. ErrShards if there are several.
func (n *Node) Transfer(ctx context.Context, to replog.NodeID) error {
	s, err := n.only()
	if err != nil {
		return err
	}
	return s.Transfer(ctx, to)
}

// Add is [Shard.Add]. ErrShards if there are several: a node takes part in each by itself.
func (n *Node) Add(ctx context.Context, id replog.NodeID) error {
	s, err := n.only()
	if err != nil {
		return err
	}
	return s.Add(ctx, id)
}

// Remove is [Shard.Remove]. ErrShards if there are several.
func (n *Node) Remove(ctx context.Context, id replog.NodeID) error {
	s, err := n.only()
	if err != nil {
		return err
	}
	return s.Remove(ctx, id)
}

// Ready waits until this node can take requests: the application runs here and takes transactions, or another node leads. It
// returns the error of ctx, or why the node takes no part any more: see [Status].
func (n *Node) Ready(ctx context.Context) error {
	for _, s := range n.shards {
		if err := s.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Configure is [partition.App.Configure], for the application that runs here now, if one does, and for each that will. Other
// nodes stay as they are.
func (n *Node) Configure(ctx context.Context, c partition.Config) error {
	if c.Settings.StopLimit == 0 {
		c.Settings.StopLimit = DefaultStopLimit
	}
	n.mu.Lock()
	a := n.application
	a.Settings, a.RequestLane, a.RequestLaneBytes = c.Settings, c.RequestLane, c.RequestLaneBytes
	a = a.WithDefaults()
	err := a.Validate()
	if err == nil {
		n.application = a
	}
	n.mu.Unlock()
	if err != nil {
		return err
	}
	for _, s := range n.shards {
		r, _ := s.now()
		if r == nil {
			continue
		}
		if failed := r.app.Configure(ctx, c); failed != nil && r.ctx.Err() == nil {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// toDeploy is what the next reign deploys.
func (n *Node) toDeploy() partition.Application {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.application
}

// SetTraces gives trace ids from now on, as [partition.AppParts.SetTraces] does.
func (n *Node) SetTraces(g *ids.TraceGenerator) {
	for _, s := range n.shards {
		s.parts.SetTraces(g)
	}
}

// Stop ends the long polls and streams that [Node.Handler] answers, as [httpapi.API.Stop] does, and lets /readyz say that the
// node is not ready, so that the server can be shut down. The node goes on until Close.
func (n *Node) Stop() {
	n.stopServing()
	if w := n.all.Load(); w != nil {
		w.api.Stop()
	}
	for _, s := range n.shards {
		s.stopServing()
	}
}

// Close lets another node lead, if one can within two failovers each, then ends the application, the store and the node's
// part of the log. Give it a context of its own, not the one whose end has told the program to stop.
//
// When ctx ends first, its error is among what Close returns. What is left may still be open then: call Close again, which
// goes on. Else all is closed, whatever is returned. Closing again returns the same.
func (n *Node) Close(ctx context.Context) error {
	select {
	case n.closing <- struct{}{}:
		defer func() { <-n.closing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if n.closed {
		return n.answer
	}
	n.handOver(ctx)
	n.stop()
	for _, s := range n.shards {
		if s.ended == nil {
			continue
		}
		select {
		case <-s.ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	err := n.end(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	n.closed, n.answer = true, err
	return err
}

// handOver lets other nodes lead, if any can.
func (n *Node) handOver(ctx context.Context) {
	var all sync.WaitGroup
	for _, s := range n.shards {
		all.Go(func() { s.handOver(ctx, n.o.nodes()) })
	}
	all.Wait()
}

// end closes what is open. Nothing is deployed any more.
func (n *Node) end(ctx context.Context) (err error) {
	n.Stop()
	if n.peers != nil {
		err = n.peers.close(ctx)
	}
	for _, s := range n.shards {
		err = errors.Join(err, s.close(ctx))
	}
	if ctx.Err() != nil {
		return err
	}
	if n.port != nil {
		err = errors.Join(err, n.port.Close())
	}
	for _, s := range n.shards {
		err = errors.Join(err, s.parts.Close(ctx))
		s.system.Shutdown()
	}
	n.stop()
	return err
}

// retryDelay is how long to wait before a reign is begun again that could not begin.
const retryDelay = time.Second

// isOver reports whether an error is that of an end: of a store that was closed, or an application that was undeployed.
func isOver(err error) bool {
	return errors.Is(err, storage.ErrClosed) || errors.Is(err, partition.ErrUnknownApplication)
}
