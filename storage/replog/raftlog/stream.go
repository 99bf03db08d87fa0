package raftlog

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/storage/replog"
)

// streams are a log's, through its node's port: a [raft.StreamLayer]. It closes all of them when it is closed: raft waits for
// its goroutines then, and these for answers.
type streams struct {
	port  *Port
	shard replog.Shard
	peers *peers
	// came are those that others have opened.
	came   chan net.Conn
	closed context.Context
	end    context.CancelFunc

	mu   sync.Mutex
	open map[*stream]struct{}
}

// stream is one that is closed with all others.
type stream struct {
	net.Conn
	of *streams
}

func newStreams(p *Port, shard replog.Shard, known *peers) *streams {
	s := &streams{port: p, shard: shard, peers: known, came: make(chan net.Conn), open: make(map[*stream]struct{})}
	s.closed, s.end = context.WithCancel(context.Background())
	return s
}

// keep notes a stream. It is closed if all are.
func (s *streams) keep(c net.Conn) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Err() != nil {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	kept := &stream{Conn: c, of: s}
	s.open[kept] = struct{}{}
	return kept, nil
}

// Close implements [net.Conn].
func (s *stream) Close() error {
	s.of.mu.Lock()
	delete(s.of.open, s)
	s.of.mu.Unlock()
	return s.Conn.Close()
}

// hand gives a new stream to whoever accepts.
func (s *streams) hand(c net.Conn) error {
	c, err := s.keep(c)
	if err != nil {
		return err
	}
	select {
	case s.came <- c:
		return nil
	case <-s.closed.Done():
		return net.ErrClosed
	}
}

// Accept implements [net.Listener].
func (s *streams) Accept() (net.Conn, error) {
	select {
	case c := <-s.came:
		return c, nil
	case <-s.closed.Done():
		return nil, net.ErrClosed
	}
}

// Dial implements [raft.StreamLayer].
func (s *streams) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.closed, timeout)
	defer cancel()
	c, err := s.port.dial(ctx, replog.NodeID(to), s)
	if err != nil {
		if errors.Is(err, ErrForgotten) && s.peers != nil {
			s.peers.forgotten(err)
		}
		return nil, err
	}
	return s.keep(c)
}

// Close implements [net.Listener].
func (s *streams) Close() error {
	s.port.mu.Lock()
	if s.port.logs[s.shard] == s {
		delete(s.port.logs, s.shard)
	}
	s.port.mu.Unlock()
	s.mu.Lock()
	s.end()
	all := s.open
	s.open = make(map[*stream]struct{})
	s.mu.Unlock()
	for c := range all {
		_ = c.Conn.Close()
	}
	return nil
}

// Addr implements [net.Listener]: this node's address for raft, which is its name.
func (s *streams) Addr() net.Addr { return nodeAddr(s.port.o.Node) }

type nodeAddr replog.NodeID

// Network implements [net.Addr].
func (nodeAddr) Network() string { return "partita" }

func (a nodeAddr) String() string { return string(a) }
