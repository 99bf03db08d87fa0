// Package links cuts the streams between nodes, each direction alone, for tests: what is under way arrives when the link is
// healed, or the stream's deadline has passed, as with TCP.
package links

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/partita-go/partita/storage/replog"
)

// Links are the directions between some nodes. The zero value is ready, and nothing is cut. Its methods may be called
// concurrently.
type Links struct {
	mu  sync.Mutex
	cut map[link]chan struct{}
}

// link is one direction.
type link struct{ from, to replog.NodeID }

// Cut holds what goes from one node to another. Cutting twice is harmless.
func (l *Links) Cut(from, to replog.NodeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut == nil {
		l.cut = make(map[link]chan struct{})
	}
	if l.cut[link{from, to}] == nil {
		l.cut[link{from, to}] = make(chan struct{})
	}
}

// Heal lets it go on.
func (l *Links) Heal(from, to replog.NodeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if healed := l.cut[link{from, to}]; healed != nil {
		close(healed)
		delete(l.cut, link{from, to})
	}
}

// healed returns what is closed when a direction is healed, nil if it is not cut.
func (l *Links) healed(from, to replog.NodeID) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut[link{from, to}]
}

// Wrap is a node's raftlog.PortOptions.Wrap. Each node holds what comes to it, so both ends of a stream need it.
func (l *Links) Wrap(self replog.NodeID) func(replog.NodeID, net.Conn) net.Conn {
	return func(peer replog.NodeID, c net.Conn) net.Conn {
		return &conn{Conn: c, links: l, from: peer, to: self, closed: make(chan struct{})}
	}
}

type conn struct {
	net.Conn
	links    *Links
	from, to replog.NodeID

	closed chan struct{}
	once   sync.Once

	mu       sync.Mutex
	deadline time.Time
}

// Read implements [net.Conn].
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 && !errors.Is(err, io.EOF) {
		return n, err
	}
	for {
		healed := c.links.healed(c.from, c.to)
		if healed == nil {
			return n, err
		}
		if err := c.await(healed); err != nil {
			return 0, err
		}
	}
}

func (c *conn) await(healed <-chan struct{}) error {
	c.mu.Lock()
	deadline := c.deadline
	c.mu.Unlock()
	var over <-chan time.Time
	if !deadline.IsZero() {
		t := time.NewTimer(time.Until(deadline))
		defer t.Stop()
		over = t.C
	}
	select {
	case <-healed:
		return nil
	case <-c.closed:
		return net.ErrClosed
	case <-over:
		return os.ErrDeadlineExceeded
	}
}

// SetDeadline implements [net.Conn].
func (c *conn) SetDeadline(t time.Time) error {
	c.remember(t)
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline implements [net.Conn].
func (c *conn) SetReadDeadline(t time.Time) error {
	c.remember(t)
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) remember(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
