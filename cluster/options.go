package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/raftlog"
)

// DefaultStopLimit is the setting StopLimit of an application on several nodes, unless it has one. It bounds for how long a
// handler can keep a node that does not lead any more from leading again.
const DefaultStopLimit = 5 * time.Second

// Options are one node's. Node, Peers, Dir and Application must be set.
type Options struct {
	// Node is this node. Peers are where all nodes listen for each other, this one included, as "10.0.0.1:7421": a port of
	// its own, not that of HTTP. Which nodes there are is settled when the log is made; the addresses may be others at each
	// start.
	Node  replog.NodeID
	Peers map[replog.NodeID]string
	// Listen is where this node listens for the others, as ":7421". Default: its address among Peers.
	Listen string
	// TLS is by what nodes know each other, on both sides: see [raftlog.PortOptions]. It is required unless all addresses
	// are loopback ones.
	TLS *tls.Config

	// Dir is this node's directory. Its store is in shard-0 below it, its part of the log in raft-0; those of other shards
	// beside them.
	Dir string
	// Shards is how many shards there are. Each has the partitions whose numbers have one remainder by it, a log of its own,
	// and an owner of its own: so several nodes can take appends. It is settled when the directory is made, and the same on
	// all nodes: Start refuses another one. 0 is 1; at most as many as partitions, and [MaxShards].
	Shards int
	// Create makes what is not there of these. Without it Start refuses that: a volume that is not mounted must not begin
	// anew. Never set it to give a node that has lost its disk its old name back: it could give away what it has promised.
	Create bool

	// Join makes what is not there for a node that is new, instead: under a name that no node ever had, of what the node that
	// leads has, which must answer. Peers are all, this one included, and the others were started with it among theirs. It takes
	// part when [Node.Add] has added it.
	Join bool

	// Application is what is deployed on the node that leads. Its setting StopLimit defaults to [DefaultStopLimit].
	Application partition.Application
	// Store are the settings of the store. Log, Create and NoGenerators are Start's.
	Store bolt.Options
	// Runtime is what the application runs with.
	Runtime partition.Options
	// HTTP are the limits of [Node.Handler].
	HTTP httpapi.Options

	// Failover is how long nobody is heard until another node wants to lead. All nodes need the same. Default
	// [raftlog.DefaultFailover], 300 ms to 5 s: more for links that are slow or processors that are shared.
	Failover time.Duration

	// Lead, if it is not nil, is called in a goroutine of its own each time this node begins to lead, when the application
	// takes transactions: it spawns command processors and subscribes. It may return or stay. ctx ends with the leadership,
	// and app with it. What it returns is logged, and told by [Node.Status]; it ends nothing. If there are several shards, it
	// is called for each, and app runs the partitions of that one, see [partition.App.Owns]; calls may overlap.
	Lead func(ctx context.Context, app *partition.App) error

	// Logger gets what happens to the node, and raft's lines. Default: none.
	Logger *zap.Logger

	// What tests put in the place of the network, of a store's room, and of how many entries the log keeps.
	address func(replog.NodeID) string
	wrap    func(peer replog.NodeID, stream net.Conn) net.Conn
	full    func(*bolt.Store) error
	keep    uint64
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Shards == 0 {
		o.Shards = 1
	}
	if o.Failover == 0 {
		o.Failover = raftlog.DefaultFailover
	}
	if o.Listen == "" {
		o.Listen = o.Peers[o.Node]
	}
	if o.Application.Settings.StopLimit == 0 {
		o.Application.Settings.StopLimit = DefaultStopLimit
	}
	if o.address == nil {
		peers := maps.Clone(o.Peers)
		o.address = func(id replog.NodeID) string { return peers[id] }
	}
	if o.full == nil {
		o.full = (*bolt.Store).Full
	}
	o.Application = o.Application.WithDefaults()
	o.HTTP = o.HTTP.WithDefaults()
	return o
}

// check returns what is wrong. It expects defaults to be filled in.
func (o *Options) check() error {
	if _, ok := o.Peers[o.Node]; !ok {
		return fmt.Errorf("%w: Peers: got %q, want node %q among them", ErrOptions, o.nodes(), o.Node)
	}
	if o.Dir == "" {
		return fmt.Errorf("%w: Dir is empty", ErrOptions)
	}
	if o.Join && o.Create {
		return fmt.Errorf("%w: Create and Join: got both, want one", ErrOptions)
	}
	if err := o.checkAddresses(); err != nil {
		return err
	}
	if err := o.Application.Validate(); err != nil {
		return err
	}
	if most := min(MaxShards, o.Application.Descriptor.Partitions); o.Shards < 1 || uint64(o.Shards) > uint64(most) {
		return fmt.Errorf("%w: Shards: got %d, want 1 to %d", ErrOptions, o.Shards, most)
	}
	return o.HTTP.Validate()
}

func (o *Options) checkAddresses() error {
	open := ""
	for _, address := range append(slices.Collect(maps.Values(o.Peers)), o.Listen) {
		host, port, err := net.SplitHostPort(address)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return fmt.Errorf("%w: address %.80q: want HOST:PORT: %w", ErrOptions, address, err)
		}
		if host != "localhost" && !net.ParseIP(host).IsLoopback() {
			open = address
		}
	}
	if open != "" && o.TLS == nil {
		return fmt.Errorf("%w: address %q is not a loopback address: TLS is needed, for both sides", ErrOptions, open)
	}
	return nil
}

// nodes returns the names of all nodes, in order.
func (o *Options) nodes() []replog.NodeID { return slices.Sorted(maps.Keys(o.Peers)) }

// portOptions are those of the node's port.
func (o *Options) portOptions() raftlog.PortOptions {
	return raftlog.PortOptions{Node: o.Node, Listen: o.Listen, Address: o.address, TLS: o.TLS, Wrap: o.wrap}
}
