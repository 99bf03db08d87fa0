package raftlog

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

const (
	// handshakeTime is how long a new stream may take until it is a log's.
	handshakeTime = 5 * time.Second
	// maxHandshakes is how many may be at that at once. More are closed.
	maxHandshakes = 64
)

// PortOptions are a node's port.
type PortOptions struct {
	// Node is this node.
	Node replog.NodeID
	// Listen is where it listens, as "10.0.0.1:7101".
	Listen string
	// Address returns where another node listens, "" if that is not known. It may change. It may be called concurrently.
	Address func(replog.NodeID) string
	// TLS says how nodes know each other: its certificate is shown to both sides, and both sides are checked, by RootCAs and
	// ClientCAs. The certificate must be for the host of the node's address, or for ServerName if that is not empty; that of a
	// node that only asks may be for its name instead. nil: the streams are open to anybody on the network; that is for the
	// loopback interface.
	TLS *tls.Config
	// Wrap, if it is not nil, is given each stream to or from another node. Tests cut links there.
	Wrap func(peer replog.NodeID, stream net.Conn) net.Conn
}

// Port is a node's TCP port for all its logs, and for requests. Its methods may be called concurrently.
type Port struct {
	o        PortOptions
	listener net.Listener
	// handshakes is full when as many streams as may be are not any log's yet.
	handshakes chan struct{}
	ended      context.Context
	end        context.CancelFunc
	routines   sync.WaitGroup

	mu   sync.Mutex
	logs map[replog.Shard]*streams
}

// Listen opens a node's port. ErrOptions.
func Listen(o PortOptions) (*Port, error) {
	if err := checkNode(o.Node); err != nil {
		return nil, err
	}
	if o.Address == nil {
		return nil, fmt.Errorf("%w: Address is nil", ErrOptions)
	}
	if o.TLS != nil {
		if len(o.TLS.Certificates) == 0 && o.TLS.GetCertificate == nil || o.TLS.ClientCAs == nil || o.TLS.RootCAs == nil {
			return nil, fmt.Errorf("%w: TLS needs a certificate, RootCAs and ClientCAs", ErrOptions)
		}
		o.TLS = o.TLS.Clone()
		o.TLS.ClientAuth = tls.RequireAndVerifyClientCert
		o.TLS.MinVersion = max(o.TLS.MinVersion, tls.VersionTLS13)
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, err
	}
	p := &Port{o: o, listener: listener, handshakes: make(chan struct{}, maxHandshakes), logs: make(map[replog.Shard]*streams)}
	p.ended, p.end = context.WithCancel(context.Background())
	p.routines.Go(p.accept)
	return p, nil
}

// Addr is where the port listens.
func (p *Port) Addr() net.Addr { return p.listener.Addr() }

// Close closes the port and all streams. Close the logs first. Closing twice is harmless.
func (p *Port) Close() error {
	p.end()
	err := p.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	p.mu.Lock()
	logs := make([]*streams, 0, len(p.logs))
	for _, s := range p.logs {
		logs = append(logs, s)
	}
	p.mu.Unlock()
	for _, s := range logs {
		_ = s.Close()
	}
	p.routines.Wait()
	return err
}

// open gives a log its streams, to and from the nodes that its peers are.
func (p *Port) open(shard replog.Shard, known *peers) (*streams, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended.Err() != nil {
		return nil, fmt.Errorf("port: %w", storage.ErrClosed)
	}
	if p.logs[shard] != nil {
		return nil, fmt.Errorf("%w: shard %d of node %s", storage.ErrLocked, shard, p.o.Node)
	}
	s := newStreams(p, shard, known)
	p.logs[shard] = s
	return s, nil
}

// of returns a log's streams, nil if it is not here.
func (p *Port) of(shard replog.Shard) *streams {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.logs[shard]
}

// accept takes new streams, until the port is closed.
func (p *Port) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			// Out of file descriptors, perhaps.
			select {
			case <-p.ended.Done():
				return
			case <-time.After(10 * time.Millisecond):
				continue
			}
		}
		select {
		case p.handshakes <- struct{}{}:
			p.routines.Go(func() {
				defer func() { <-p.handshakes }()
				if err := p.receive(c); err != nil {
					_ = c.Close()
				}
			})
		default:
			_ = c.Close()
		}
	}
}

// receive makes a new stream a log's.
func (p *Port) receive(accepted net.Conn) error {
	stop := context.AfterFunc(p.ended, func() { _ = accepted.Close() })
	defer stop()
	c := accepted
	if err := c.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return err
	}
	if p.o.TLS != nil {
		c = tls.Server(c, p.o.TLS)
	}
	h, err := readHello(c)
	if err != nil {
		return err
	}
	s, a := (*streams)(nil), otherName
	// Of another version only that is known.
	if h.version != helloVersion || p.isCertified(c, h.from) {
		s, a = p.judge(h)
	}
	said := []byte{byte(a)}
	if s != nil {
		c = p.wrap(h.from, c)
		said = p.livesOf(s).append(said)
	}
	if _, err := c.Write(said); err != nil {
		return err
	}
	if s == nil {
		return errRefused
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return err
	}
	return s.hand(c)
}

// isCertified reports whether the certificate of whoever opens a stream is for the node that it says it is: for its name, or
// for the host of its address. Any is, if all nodes have one for the same name.
func (p *Port) isCertified(c net.Conn, from replog.NodeID) bool {
	secure, ok := c.(*tls.Conn)
	if !ok {
		return true
	}
	host, _, _ := net.SplitHostPort(p.o.Address(from))
	certificate := secure.ConnectionState().PeerCertificates[0]
	return slices.ContainsFunc([]string{string(from), host, p.o.TLS.ServerName}, func(name string) bool {
		return name != "" && certificate.VerifyHostname(name) == nil
	})
}

// judge says whose a stream is, and what its first answer is.
func (p *Port) judge(h hello) (*streams, answer) {
	if h.version != helloVersion {
		return nil, otherVersion
	}
	if h.to != p.o.Node {
		return nil, otherNode
	}
	s := p.of(h.shard)
	if s == nil {
		return nil, noLog
	}
	if h.shard == requestShard {
		if !p.mayBe(h.from, h.lives) {
			return nil, otherLife
		}
		return s, welcome
	}
	if h.meant != (life{}) && h.meant != s.peers.life() {
		return nil, notMeant
	}
	if same, err := s.peers.know(h.from, h.lives[h.shard]); err != nil {
		return nil, noLog
	} else if !same {
		return nil, otherLife
	}
	return s, welcome
}

// livesOf returns which one of its name this node is in a stream: for requests it is those of all its logs that are open.
func (p *Port) livesOf(s *streams) lives {
	if s.shard != requestShard {
		return lives{s.shard: s.peers.life()}
	}
	own := make(lives)
	for shard, known := range p.known() {
		own[shard] = known.life()
	}
	return own
}

// mayBe reports whether a node with requests may be the one that this node has met: in one log it is, or there is no log, open
// on both, in which they have met. Nodes meet in those logs only that one of them has led, or wanted to.
func (p *Port) mayBe(id replog.NodeID, its lives) bool {
	none := true
	for shard, known := range p.known() {
		l, open := its[shard]
		met := known.met(id)
		switch {
		case !open || met == life{}:
		case met == l:
			return true
		default:
			none = false
		}
	}
	return none
}

// known returns whom the logs that are open know.
func (p *Port) known() map[replog.Shard]*peers {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[replog.Shard]*peers)
	for shard, s := range p.logs {
		if s.peers != nil {
			all[shard] = s.peers
		}
	}
	return all
}

func (p *Port) wrap(peer replog.NodeID, c net.Conn) net.Conn {
	if p.o.Wrap == nil {
		return c
	}
	return p.o.Wrap(peer, c)
}

// dial opens a stream to a log of another node's, or to its requests.
func (p *Port) dial(ctx context.Context, to replog.NodeID, s *streams) (net.Conn, error) {
	where := p.o.Address(to)
	if where == "" {
		return nil, fmt.Errorf("node %s: %w: its address is not known", to, errRefused)
	}
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", where)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(p.ended, func() { _ = raw.Close() })
	defer stop()
	h := hello{version: helloVersion, shard: s.shard, from: p.o.Node, to: to, lives: p.livesOf(s), meant: s.peers.met(to)}
	c, err := p.greet(ctx, raw, where, h, s)
	if err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("node %s at %s: %w", to, where, err)
	}
	return c, nil
}

// greet says whose a stream is, and waits for the answer.
func (p *Port) greet(ctx context.Context, raw net.Conn, where string, h hello, s *streams) (net.Conn, error) {
	deadline, ok := ctx.Deadline()
	if end := time.Now().Add(handshakeTime); !ok || deadline.After(end) {
		deadline = end
	}
	c := raw
	if p.o.TLS != nil {
		config := p.o.TLS
		if config.ServerName == "" {
			host, _, err := net.SplitHostPort(where)
			if err != nil {
				return nil, err
			}
			config = config.Clone()
			config.ServerName = host
		}
		c = tls.Client(c, config)
	}
	c = p.wrap(h.to, c)
	if err := c.SetDeadline(deadline); err != nil {
		return nil, err
	}
	others, err := h.exchange(c)
	if err != nil {
		return nil, err
	}
	if err := p.recognize(h, s, others); err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Time{})
}

// recognize refuses another node than the one that was met first under its name.
func (p *Port) recognize(h hello, s *streams, others lives) error {
	if h.shard == requestShard {
		if !p.mayBe(h.to, others) {
			return fmt.Errorf("%w: %s", errRefused, answers[notMeant])
		}
		return nil
	}
	other := others[h.shard]
	same, err := s.peers.know(h.to, other)
	if err == nil && !same {
		met := s.peers.met(h.to)
		err = fmt.Errorf("%w: %s: got %x, want %x", errRefused, answers[notMeant], other[:4], met[:4])
	}
	return err
}
