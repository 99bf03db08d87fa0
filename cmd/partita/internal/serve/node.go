package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/partita-go/partita/cluster"
	"github.com/partita-go/partita/metrics"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
)

// Node says which node of several the server is. The zero value is none.
type Node struct {
	// Name is this node's, one of Peers, each as NAME=HOST:PORT.
	Name  string
	Peers []string
	// Listen is where it listens for the others. Default: what Peers says.
	Listen string
	// CertFile, KeyFile and CAFile have, as PEM, the certificate that the node shows the others, its key, and by which
	// authority those of the others are. Without them the streams are open, which loopback addresses may be.
	CertFile, KeyFile, CAFile string
	// Failover is how long nobody is heard until another node wants to lead. 0 is the default.
	Failover time.Duration
	// Shards is how many shards there are, settled when the directory is made. 0 is 1.
	Shards int
	// Join lets a new node's store be made of that of the node that leads, if there is none.
	Join bool
}

// check returns the addresses of all nodes and their TLS, which may be nil, or ErrConfig.
func (n *Node) check(descriptor string) (peers map[replog.NodeID]string, secure *tls.Config, err error) {
	if n.Name == "" {
		if len(n.Peers) > 0 || n.Listen != "" || n.CertFile != "" || n.KeyFile != "" || n.CAFile != "" || n.Shards > 1 {
			return nil, nil, fmt.Errorf("%w: peers and shards go with the name of this node: want --node, or node in the configuration", ErrConfig)
		}
		return nil, nil, nil
	}
	if descriptor == "" {
		return nil, nil, fmt.Errorf("%w: a node of several needs a descriptor: want --descriptor, or descriptor in the configuration", ErrConfig)
	}
	if peers, err = n.parsePeers(); err != nil {
		return nil, nil, err
	}
	secure, err = n.loadTLS()
	return peers, secure, err
}

func (n *Node) parsePeers() (map[replog.NodeID]string, error) {
	peers := make(map[replog.NodeID]string)
	for _, text := range n.Peers {
		name, address, ok := strings.Cut(text, "=")
		if !ok || name == "" || address == "" {
			return nil, fmt.Errorf("%w: peers: got %.80q, want NAME=HOST:PORT", ErrConfig, text)
		}
		if peers[replog.NodeID(name)] != "" {
			return nil, fmt.Errorf("%w: peers: node %.80q is there twice", ErrConfig, name)
		}
		peers[replog.NodeID(name)] = address
	}
	if peers[replog.NodeID(n.Name)] == "" {
		return nil, fmt.Errorf("%w: peers: got %.200q, want node %.80q among them", ErrConfig, n.Peers, n.Name)
	}
	return peers, nil
}

// loadTLS reads the files of the certificate, nil if there are none.
func (n *Node) loadTLS() (*tls.Config, error) {
	if n.CertFile == "" && n.KeyFile == "" && n.CAFile == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	if n.CertFile == "" || n.KeyFile == "" || n.CAFile == "" {
		return nil, fmt.Errorf("%w: between nodes a certificate, its key and the authority of all are needed, got some of them", ErrConfig)
	}
	certificate, err := tls.LoadX509KeyPair(n.CertFile, n.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("%w: certificate between nodes: %w", ErrConfig, err)
	}
	text, err := os.ReadFile(n.CAFile)
	if err != nil {
		return nil, fmt.Errorf("%w: authority of nodes: %w", ErrConfig, err)
	}
	all := x509.NewCertPool()
	if !all.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%w: authority of nodes: %s: there is no certificate in it", ErrConfig, n.CAFile)
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: all, ClientCAs: all, MinVersion: tls.VersionTLS13}, nil
}

// StoreDir returns where the store is: that of the first shard, if there are several.
func (c *Config) StoreDir() string {
	if c.Node.Name == "" {
		return c.Dir
	}
	return cluster.StoreDir(c.Dir)
}

// runNode serves the application of several nodes, of which this is one, until ctx ends.
func (s *server) runNode(ctx context.Context, place *place, opening *opening, started func(url, application string)) error {
	node, err := s.startNode(ctx, place, opening)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	own := served{
		name: place.descriptor.Application, partitions: place.descriptor.Partitions, handler: node.Handler(),
		configure: node.Configure, setTraces: node.SetTraces, ready: node.Ready, status: func() string { return nodeStatus(node) }, stop: node.Stop,
	}
	for _, shard := range node.Shards() {
		own.stores = append(own.stores, shardStore{cluster.ShardDir(s.config.Dir, shard.Index()), shard.Store})
	}
	return errors.Join(s.serveStore(ctx, &own, opening.handOver, started), inTime(closeLimit, node.Close))
}

// startNode opens the node. What is told of the application is told while it runs here.
func (s *server) startNode(ctx context.Context, place *place, opening *opening) (*cluster.Node, error) {
	c := s.config
	o := cluster.Options{
		Node: replog.NodeID(c.Node.Name), Peers: place.peers, Listen: c.Node.Listen, TLS: place.peerTLS, Dir: c.Dir, Create: c.Create, Join: c.Node.Join,
		Shards:      c.Node.Shards,
		Application: c.application(place.descriptor), Store: c.Store, Failover: c.Node.Failover,
		Runtime: s.runtime(), HTTP: s.options(), Logger: s.logger.Named("serve"),
	}
	o.Store.Progress = opening.progress
	opened := make(chan *cluster.Node, 1)
	o.Lead = func(ctx context.Context, app *partition.App) error {
		var node *cluster.Node
		select {
		case node = <-opened:
			opened <- node
		case <-ctx.Done():
			return nil
		}
		named, store := watched(node, app)
		defer s.metrics.Watch(named, store)()
		<-ctx.Done()
		return nil
	}
	node, err := cluster.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	opened <- node
	var standing []func() metrics.Node
	for _, shard := range node.Shards() {
		standing = append(standing, func() metrics.Node {
			now := shard.Status()
			return metrics.Node{
				Shard: shard.Index(), Leads: now.Serves, KnowsLeader: now.Leader != "", Stopped: now.Stopped != nil,
				Head: now.Head, Behind: now.Behind,
			}
		})
	}
	s.metrics.WatchNode(standing...)
	opening.does("looking for who leads")
	return node, nil
}

// shardApp is an application that runs the partitions of one shard of several: metrics tell it from those of others.
type shardApp struct {
	*partition.App
	name string
}

// Name implements [metrics.App].
func (a *shardApp) Name() string { return a.name }

// watched returns an application as the metrics have it, and its store.
func watched(node *cluster.Node, app *partition.App) (metrics.App, *bolt.Store) {
	shards := node.Shards()
	for _, s := range shards {
		if len(shards) > 1 && app.Owns(s.Owned()[0]) {
			return &shardApp{app, fmt.Sprintf("%s/shard-%d", app.Name(), s.Index())}, s.Store()
		}
	}
	return app, node.Store()
}

// nodeStatus says in a line what the node does: of several shards, what it does in each.
func nodeStatus(node *cluster.Node) string {
	shards := node.Shards()
	if len(shards) == 1 {
		return statusIn(shards[0])
	}
	var all []string
	for _, s := range shards {
		all = append(all, fmt.Sprintf("shard %d: %s", s.Index(), statusIn(s)))
	}
	return strings.Join(all, "; ")
}

func statusIn(s *cluster.Shard) string {
	now := s.Status()
	switch {
	case now.Stopped != nil:
		return "it takes no part in the log: " + now.Stopped.Error()
	case now.Serves:
		return "it leads"
	case now.Leader == "":
		return "nobody leads: it does not hear most others"
	}
	return fmt.Sprintf("node %s leads", now.Leader)
}
