package raftlog

import (
	"context"
	"math"
	"net"

	"github.com/partita-go/partita/storage/replog"
)

// requestShard stands for requests in a stream's first bytes, where another stream has its log's shard. No log has it.
const requestShard replog.Shard = math.MaxUint32

// Requests are the streams between nodes that are no log's, through the same port and by the same TLS: for what one node
// asks another, as the owner. They are a [net.Listener]. Its methods may be called concurrently.
type Requests struct{ streams *streams }

// Requests opens the node's streams for requests. ErrLocked of package storage if they are open, ErrClosed if the port is
// not.
func (p *Port) Requests() (*Requests, error) {
	s, err := p.open(requestShard, nil)
	if err != nil {
		return nil, err
	}
	return &Requests{streams: s}, nil
}

// Dial opens a stream to another node, which has to accept it.
func (r *Requests) Dial(ctx context.Context, to replog.NodeID) (net.Conn, error) {
	c, err := r.streams.port.dial(ctx, to, r.streams)
	if err != nil {
		return nil, err
	}
	return r.streams.keep(c)
}

// Accept implements [net.Listener]. Whoever accepts must not wait long: so many streams as maxHandshakes wait for it, and no
// log gets one meanwhile.
func (r *Requests) Accept() (net.Conn, error) { return r.streams.Accept() }

// Close implements [net.Listener]: it closes all streams that were accepted or opened.
func (r *Requests) Close() error { return r.streams.Close() }

// Addr implements [net.Listener]: the name of the node.
func (r *Requests) Addr() net.Addr { return r.streams.Addr() }
