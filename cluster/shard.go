package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/raftlog"
)

// Shard is what a node has of some partitions: their part of the log, and their store. It is safe for concurrent use.
type Shard struct {
	node *Node
	// index is its number, of is that among how many: see headerShard.
	index  int
	of     string
	o      *Options
	own    atomic.Pointer[part]
	system *actor.ActorSystem
	parts  *partition.AppParts
	// ended is closed when it governs no more, nil if it has never.
	ended chan struct{}

	mu sync.Mutex
	// reign is that of now, nil while the application does not run here. changed is closed when that changes.
	reign   *reign
	changed chan struct{}
	// failed is why the last reign could not begin, or what Lead has returned.
	failed error
	// handedOver says that somebody wanted another node to lead, and neither this one nor the preferred one has since.
	handedOver bool

	// mayRelieve is when another node may be let lead again, since the store here has no room.
	mayRelieve time.Time
	// places counts how often another node was to lead since placed, since it is preferred.
	placed time.Time
	places int
	// seeds counts how often this node has made itself anew since seeded.
	seeded time.Time
	seeds  int
	// seeding is held while another node is seeded.
	seeding sync.Mutex
}

func newShard(n *Node, index int) *Shard {
	o := n.o
	if o.Shards > 1 {
		o.Logger = o.Logger.With(zap.Int("shard", index))
	}
	s := &Shard{node: n, index: index, of: fmt.Sprintf("%d/%d", index, o.Shards), o: &o, system: quiet.NewSystem(), changed: make(chan struct{})}
	s.parts = partition.NewAppParts(s.system, n.o.Runtime)
	return s
}

// dir is where the store is.
func (s *Shard) dir() string { return ShardDir(s.o.Dir, s.index) }

// logOptions are those of the node's part of the log.
func (s *Shard) logOptions(port *raftlog.Port) raftlog.Options {
	return raftlog.Options{
		Dir: raftDir(s.o.Dir, s.index), Node: s.o.Node, Shard: groupOf(s.index, s.o.Shards), Port: port, Failover: s.o.Failover,
		Keep: s.o.keep, Logger: s.o.Logger.Named("raft"),
	}
}

// create makes the node's part of the log, unless it is there. It comes before the store: a store that has entries does not
// fit a log that has none.
func (s *Shard) create() error {
	if !s.o.Create {
		return nil
	}
	if err := os.MkdirAll(s.o.Dir, 0o700); err != nil {
		return err
	}
	if err := raftlog.Create(s.logOptions(nil), s.o.nodes()); !errors.Is(err, raftlog.ErrExists) {
		return err
	}
	return nil
}

// open opens all that there is, and governs it from then on.
func (s *Shard) open(ctx context.Context) error {
	if s.o.Join {
		if err := s.join(ctx); err != nil {
			return err
		}
	}
	if err := s.finishSeed(); err != nil {
		return err
	}
	if err := s.openPart(ctx, s.o.Create); err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go s.govern()
	return nil
}

// Reader returns a reader of this node's store: the same until the node was mended, see Store. Reads with a context of
// [replog.Local] take what this node has, a prefix, perhaps late. All others take what anybody was told to be there: they
// return replog.ErrNotOwner unless this node leads, which it asks the others. To wait, as by AwaitWLog, is local on every
// node.
func (s *Shard) Reader() *partition.Reader { return s.part().reader }

// Store returns this node's store: for backups and figures. Generators of ids have their numbers from
// [Node.NextGenerator]. It is open as long as the node is, or until the node is mended:
// when its store had no room, or was made anew of another node's. Then it is another one.
func (s *Shard) Store() *bolt.Store { return s.part().store }

// App returns the application while it runs here, which is while this node leads. It is valid until the leadership ends: its
// sequencers answer ErrStopped of package messages then, or replog.ErrNotOwner. Elsewhere the error is an [*OwnerError].
func (s *Shard) App() (*partition.App, error) {
	if r, _ := s.now(); r != nil {
		return r.app, nil
	}
	return nil, &OwnerError{s.Leader()}
}

// Leader returns who leads, or is about to, as far as this node knows; "" if it does not.
func (s *Shard) Leader() replog.NodeID {
	now, _ := s.part().leadership()
	return now.Leader
}

// ready is [Node.Ready].
func (s *Shard) ready(ctx context.Context) error {
	for {
		o, here, there := s.owner()
		if !o.unknown() {
			return nil
		}
		if now, _ := s.part().leadership(); now.Stopped != nil {
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

// Transfer lets another node lead, which must have kept up. It returns when this one does not lead any more. If there are
// several shards, nobody lets the preferred node lead until this one was restarted, or has led again. An [*OwnerError] if it
// does not lead now; another error if the other node cannot, or does not answer: this one leads on then.
//
// ErrOptions if it is none of Options.Peers, or this one: nothing has changed then.
func (s *Shard) Transfer(ctx context.Context, to replog.NodeID) error {
	if now, _ := s.part().leadership(); now.Term == 0 {
		return &OwnerError{s.Leader()}
	}
	if _, there := s.o.Peers[to]; !there || to == s.o.Node {
		return fmt.Errorf("%w: transfer: got node %.80q, want another one of %q", ErrOptions, to, s.o.nodes())
	}
	err := s.asOwner(s.part().log.Transfer(ctx, to))
	if err == nil {
		s.setHandedOver(to != s.preferred())
	}
	return err
}

func (s *Shard) setHandedOver(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handedOver = is
}

// stopServing ends long polls and streams.
func (s *Shard) stopServing() {
	own := s.part()
	if own == nil {
		return
	}
	own.api.Stop()
	if r, _ := s.now(); r != nil {
		r.api.Stop()
	}
}

// close closes the store, and with it the part of the log.
func (s *Shard) close(ctx context.Context) error {
	own := s.part()
	if own == nil {
		return nil
	}
	return own.store.Close(ctx)
}

// handOverTime is how long one other node has to take over when this one is closed, in failovers.
const handOverTime = 2

// handOver lets one of some nodes lead, if one can, and reports whether this one does not lead any more.
func (s *Shard) handOver(ctx context.Context, nodes []replog.NodeID) bool {
	if s.part() == nil {
		return true
	}
	for _, id := range nodes {
		if id == s.o.Node {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, handOverTime*s.o.Failover)
		if !s.leads(limited) {
			cancel()
			return true
		}
		err := s.part().log.Transfer(limited, id)
		cancel()
		if err == nil {
			return true
		}
		s.o.Logger.Info("a node cannot take over", zap.String("to", string(id)), zap.Error(err))
	}
	return false
}

// leads reports whether this node leads. If it is about to, it waits for that.
func (s *Shard) leads(ctx context.Context) bool {
	for {
		now, changed := s.part().leadership()
		if now.Term != 0 || now.Leader != s.o.Node {
			return now.Term != 0
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// now returns the reign of now, nil if the application does not run here, and a channel that is closed when that changes.
func (s *Shard) now() (*reign, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reign, s.changed
}

func (s *Shard) become(r *reign) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reign = r
	close(s.changed)
	s.changed = make(chan struct{})
}

// noteFailure notes why the application does not run as it should, unless that is since another node leads.
func (s *Shard) noteFailure(err error) {
	if !hasMoved(err) {
		s.note(err)
	}
}

func (s *Shard) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
}
