package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/internal/quiet"
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
	own     atomic.Pointer[part]
	system  *actor.ActorSystem
	parts   *partition.AppParts
	peers   *peers
	handler http.Handler

	// serving ends with Stop, when streams have to.
	serving     context.Context
	stopServing context.CancelFunc
	// running ends when the node is closed; ended is closed when it governs no more.
	running context.Context
	stop    context.CancelFunc
	ended   chan struct{}

	mu sync.Mutex
	// application is what the next reign deploys.
	application partition.Application
	// reign is that of now, nil while the application does not run here. changed is closed when that changes.
	reign   *reign
	changed chan struct{}
	// failed is why the last reign could not begin, or what Lead has returned.
	failed error

	// relieved is when another node was to lead last, since the store here had no room.
	relieved time.Time
	// seeds counts how often this node has made itself anew since seeded.
	seeded time.Time
	seeds  int
	// seeding is held while another node is seeded.
	seeding sync.Mutex

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
	n := &Node{
		o: o, application: o.Application, system: quiet.NewSystem(), ended: make(chan struct{}), changed: make(chan struct{}), closing: make(chan struct{}, 1),
	}
	n.serving, n.stopServing = context.WithCancel(context.Background())
	n.running, n.stop = context.WithCancel(context.Background())
	n.parts = partition.NewAppParts(n.system, o.Runtime)
	if err := n.open(ctx); err != nil {
		close(n.ended)
		return nil, errors.Join(err, n.end(context.WithoutCancel(ctx)))
	}
	go n.govern()
	return n, nil
}

// open opens all that the node has.
func (n *Node) open(ctx context.Context) (err error) {
	if err := n.create(); err != nil {
		return err
	}
	if n.port, err = raftlog.Listen(n.o.portOptions()); err != nil {
		return err
	}
	if n.peers, err = n.startPeers(); err != nil {
		return err
	}
	if n.o.Join {
		if err := n.join(ctx); err != nil {
			return err
		}
	}
	if err := n.finishSeed(); err != nil {
		return err
	}
	if err := n.openPart(ctx, n.o.Create); err != nil {
		return err
	}
	n.handler = n.newHandler()
	return nil
}

// create makes the node's part of the log, unless it is there. It comes before the store: a store that has entries does not
// fit a log that has none.
func (n *Node) create() error {
	if !n.o.Create {
		return nil
	}
	if err := os.MkdirAll(n.o.Dir, 0o700); err != nil {
		return err
	}
	if err := raftlog.Create(n.o.logOptions(nil), n.o.nodes()); !errors.Is(err, raftlog.ErrExists) {
		return err
	}
	return nil
}

// Reader returns a reader of this node's store: the same until the node was mended, see Store. Reads with a context of [replog.Local] take what this node
// has, a prefix, perhaps late. All others take what anybody was told to be there: they return replog.ErrNotOwner unless this
// node leads, which it asks the others. To wait, as by AwaitWLog, is local on every node.
func (n *Node) Reader() *partition.Reader { return n.part().reader }

// Store returns this node's store: for backups and figures. It is open as long as the node is, or until the node is mended:
// when its store had no room, or was made anew of another node's. Then it is another one.
func (n *Node) Store() *bolt.Store { return n.part().store }

// App returns the application while it runs here, which is while this node leads. It is valid until the leadership ends: its
// sequencers answer ErrStopped of package messages then, or replog.ErrNotOwner. Elsewhere the error is an [*OwnerError].
func (n *Node) App() (*partition.App, error) {
	if r, _ := n.now(); r != nil {
		return r.app, nil
	}
	return nil, &OwnerError{n.Leader()}
}

// Leader returns who leads, or is about to, as far as this node knows; "" if it does not.
func (n *Node) Leader() replog.NodeID {
	now, _ := n.part().leadership()
	return now.Leader
}

// Ready waits until this node can take requests: the application runs here and takes transactions, or another node leads. It
// returns the error of ctx, or why the node takes no part any more: see [Status].
func (n *Node) Ready(ctx context.Context) error {
	for {
		o, here, there := n.owner()
		if !o.unknown() {
			return nil
		}
		if now, _ := n.part().leadership(); now.Stopped != nil {
			return now.Stopped
		}
		select {
		case <-here:
		case <-there:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
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
	r := n.reign
	n.mu.Unlock()
	if err != nil || r == nil {
		return err
	}
	if err := r.app.Configure(ctx, c); err != nil && r.ctx.Err() == nil {
		return err
	}
	return nil
}

// SetTraces gives trace ids from now on, as [partition.AppParts.SetTraces] does.
func (n *Node) SetTraces(g *ids.TraceGenerator) { n.parts.SetTraces(g) }

// Transfer lets another node lead, which must have kept up. It returns when this one does not lead any more. An
// [*OwnerError] if it does not lead now; another error if the other node cannot, or does not answer: this one leads on then.
//
// ErrOptions if it is none of Options.Peers, or this one: nothing has changed then.
func (n *Node) Transfer(ctx context.Context, to replog.NodeID) error {
	if now, _ := n.part().leadership(); now.Term == 0 {
		return &OwnerError{n.Leader()}
	}
	if _, there := n.o.Peers[to]; !there || to == n.o.Node {
		return fmt.Errorf("%w: transfer: got node %.80q, want another one of %q", ErrOptions, to, n.o.nodes())
	}
	err := n.part().log.Transfer(ctx, to)
	if errors.Is(err, replog.ErrNotOwner) {
		return &OwnerError{n.Leader()}
	}
	return err
}

// Stop ends the long polls and streams that [Node.Handler] answers, as [httpapi.API.Stop] does, and lets /readyz say that the
// node is not ready, so that the server can be shut down. The node goes on until Close.
func (n *Node) Stop() {
	n.stopServing()
	n.part().api.Stop()
	if r, _ := n.now(); r != nil {
		r.api.Stop()
	}
}

// handOverTime is how long one other node has to take over when this one is closed, in failovers.
const handOverTime = 2

// handOver lets one of some nodes lead, if one can.
func (n *Node) handOver(ctx context.Context, nodes []replog.NodeID) {
	for _, id := range nodes {
		if id == n.o.Node {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, handOverTime*n.o.Failover)
		if !n.leads(limited) {
			cancel()
			return
		}
		err := n.part().log.Transfer(limited, id)
		cancel()
		if err == nil {
			return
		}
		n.o.Logger.Info("a node cannot take over", zap.String("to", string(id)), zap.Error(err))
	}
}

// leads reports whether this node leads. If it is about to, it waits for that.
func (n *Node) leads(ctx context.Context) bool {
	for {
		now, changed := n.part().leadership()
		if now.Term != 0 || now.Leader != n.o.Node {
			return now.Term != 0
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
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
	n.handOver(ctx, n.o.nodes())
	n.stop()
	select {
	case <-n.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := n.end(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	n.closed, n.answer = true, err
	return err
}

// end closes what is open. Nothing is deployed any more.
func (n *Node) end(ctx context.Context) (err error) {
	own := n.part()
	if own != nil {
		n.Stop()
	}
	if n.peers != nil {
		err = n.peers.close(ctx)
	}
	if own != nil {
		err = errors.Join(err, own.store.Close(ctx))
		if ctx.Err() != nil {
			return err
		}
	}
	if n.port != nil {
		err = errors.Join(err, n.port.Close())
	}
	err = errors.Join(err, n.parts.Close(ctx))
	n.system.Shutdown()
	n.stop()
	return err
}

// now returns the reign of now, nil if the application does not run here, and a channel that is closed when that changes.
func (n *Node) now() (*reign, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reign, n.changed
}

func (n *Node) become(r *reign) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reign = r
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *Node) note(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failed = err
}

// retryDelay is how long to wait before a reign is begun again that could not begin.
const retryDelay = time.Second

// isOver reports whether an error is that of an end: of a store that was closed, or an application that was undeployed.
func isOver(err error) bool {
	return errors.Is(err, storage.ErrClosed) || errors.Is(err, partition.ErrUnknownApplication)
}
