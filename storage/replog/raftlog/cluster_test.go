package raftlog

import (
	"flag"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/raftlog/keys"
	"github.com/partita-go/partita/storage/replog/raftlog/links"
	"github.com/partita-go/partita/storage/replog/replogtest"
)

func TestMain(m *testing.M) {
	if runNode() {
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	testShard replog.Shard = 7
	// patience is how long anything may take; failover is so long that a busy machine elects nobody by itself.
	patience = 2 * time.Minute
	failover = 2 * time.Second
)

var rafts = flag.Bool("raft", false, "print raft's lines")

var nodes = []replog.NodeID{"n1", "n2", "n3"}

// cluster is three nodes in one process.
type cluster struct {
	dir    string
	change func(replog.NodeID, *Options)
	net    network

	mu   sync.Mutex
	logs map[replog.NodeID]*Log
	cut  map[replog.NodeID]bool
}

// network is what is between the nodes.
type network interface {
	// options completes those of a node that is to be started.
	options(testing.TB, *Options)
	// driver is a transport of nobody's.
	driver() raft.Transport
	link(from, to replog.NodeID, whole bool)
}

func newCluster(t testing.TB, net network, change func(replog.NodeID, *Options)) *cluster {
	c := &cluster{
		dir: t.TempDir(), net: net, change: change, logs: make(map[replog.NodeID]*Log), cut: make(map[replog.NodeID]bool),
	}
	for _, id := range nodes {
		if err := Create(c.options(id), nodes); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *cluster) options(id replog.NodeID) Options {
	o := Options{
		Dir: filepath.Join(c.dir, string(id)), Node: id, Shard: testShard, Failover: failover, segmentSize: 1 << 20,
	}
	if *rafts {
		o.Logger, _ = zap.NewDevelopment()
		o.Logger = o.Logger.Named(string(id))
	}
	if c.change != nil {
		c.change(id, &o)
	}
	return o
}

// Nodes implements [replogtest.Cluster].
func (c *cluster) Nodes() []replog.NodeID { return nodes }

// Log implements [replogtest.Cluster].
func (c *cluster) Log(t testing.TB, id replog.NodeID) replog.Log {
	o := c.options(id)
	c.net.options(t, &o)
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logs[id] = l
	return l
}

// leader returns the log of the node that leads as raft has it, nil if none does that is connected.
func (c *cluster) leader() *Log {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, l := range c.logs {
		l.mu.Lock()
		r := l.raft
		l.mu.Unlock()
		if r != nil && !c.cut[id] && r.State() == raft.Leader {
			return l
		}
	}
	return nil
}

// Elect implements [replogtest.Cluster].
func (c *cluster) Elect(t testing.TB, id replog.NodeID) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		c.mu.Lock()
		l := c.logs[id]
		c.mu.Unlock()
		_, changed := l.Leadership()
		switch leader := c.leader(); {
		case leader == l:
			return
		case leader != nil:
			_ = answerOf(t, func() raft.Future { return leader.raft.LeadershipTransferToServer(raft.ServerID(id), address(id)) })
		default:
			err := c.net.driver().TimeoutNow(raft.ServerID(id), address(id), &raft.TimeoutNowRequest{
				RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax},
			}, &raft.TimeoutNowResponse{})
			if err != nil {
				t.Logf("node %s: elect: %v", id, err)
			}
		}
		select {
		case <-changed:
		case <-time.After(200 * time.Millisecond):
		}
	}
	t.Fatalf("node %s is not elected", id)
}

// Cut implements [replogtest.Cluster].
func (c *cluster) Cut(_ testing.TB, id replog.NodeID) { c.connect(id, false) }

// Heal implements [replogtest.Cluster].
func (c *cluster) Heal(_ testing.TB, id replog.NodeID) { c.connect(id, true) }

func (c *cluster) connect(id replog.NodeID, whole bool) {
	c.mu.Lock()
	c.cut[id] = !whole
	c.mu.Unlock()
	for _, other := range nodes {
		if other != id {
			c.net.link(id, other, whole)
			c.net.link(other, id, whole)
		}
	}
}

// inProcess is raft's network in memory.
type inProcess struct {
	mu    sync.Mutex
	of    map[replog.NodeID]*raft.InmemTransport
	drive *raft.InmemTransport
}

func newInProcess() *inProcess {
	_, d := raft.NewInmemTransport("driver")
	return &inProcess{of: make(map[replog.NodeID]*raft.InmemTransport), drive: d}
}

func (n *inProcess) options(_ testing.TB, o *Options) {
	id := o.Node
	o.transport = func() raft.Transport {
		_, t := raft.NewInmemTransportWithTimeout(address(id), failover)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.of[id] = t
		n.drive.Connect(address(id), t)
		for other, ot := range n.of {
			if other != id {
				t.Connect(address(other), ot)
				ot.Connect(address(id), t)
			}
		}
		return t
	}
}

func (n *inProcess) driver() raft.Transport { return n.drive }

func (n *inProcess) link(from, to replog.NodeID, whole bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if whole {
		n.of[from].Connect(address(to), n.of[to])
	} else {
		n.of[from].Disconnect(address(to))
	}
}

// sockets are real ones, on the loopback interface.
type sockets struct {
	links links.Links
	drive raft.Transport

	mu    sync.Mutex
	ports map[replog.NodeID]*Port
}

func newSockets(t testing.TB, secure bool) *sockets {
	s := &sockets{ports: make(map[replog.NodeID]*Port)}
	var authority *keys.Authority
	if secure {
		authority = keys.NewAuthority(t)
	}
	for _, id := range append([]replog.NodeID{"driver", "n4"}, nodes...) {
		o := PortOptions{Node: id, Listen: "127.0.0.1:0", Address: s.address, Wrap: s.links.Wrap(id)}
		if secure {
			o.TLS = authority.Config(t, string(id))
		}
		p, err := Listen(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		s.mu.Lock()
		s.ports[id] = p
		s.mu.Unlock()
	}
	drive, err := newTransport(Options{Node: "driver", Shard: testShard, Port: s.ports["driver"], Failover: failover, Logger: zap.NewNop()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.drive = drive
	t.Cleanup(func() { _ = drive.Close() })
	return s
}

func (s *sockets) address(id replog.NodeID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.ports[id]; p != nil {
		return p.Addr().String()
	}
	return ""
}

func (s *sockets) options(_ testing.TB, o *Options) { o.Port = s.ports[o.Node] }
func (s *sockets) driver() raft.Transport           { return s.drive }

func (s *sockets) link(from, to replog.NodeID, whole bool) {
	if whole {
		s.links.Heal(from, to)
	} else {
		s.links.Cut(from, to)
	}
}

func TestConformance(t *testing.T) {
	t.Run("in process", func(t *testing.T) {
		t.Parallel()
		replogtest.Run(t, func(t testing.TB) replogtest.Cluster { return newCluster(t, newInProcess(), nil) })
	})
	t.Run("TCP", func(t *testing.T) {
		t.Parallel()
		replogtest.Run(t, func(t testing.TB) replogtest.Cluster { return newDoubter(t, newSockets(t, true)) })
	})
}
