package raftlog

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/raftlog/keys"
)

// newPorts returns the ports of two nodes.
func newPorts(t *testing.T, secure bool) (a, b *Port) {
	s := newSockets(t, secure)
	return s.ports[nodes[0]], s.ports[nodes[1]]
}

func open(t *testing.T, p *Port, shard replog.Shard) *streams {
	s, err := p.open(shard, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOnePortForSeveralLogs lets two logs of a node talk to those of another one.
func TestOnePortForSeveralLogs(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]bool{"open": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := newPorts(t, secure)
			for shard := range replog.Shard(2) {
				from, to := open(t, a, shard), open(t, b, shard)
				c, err := from.Dial(address(nodes[1]), patience)
				if err != nil {
					t.Fatal(err)
				}
				other, err := to.Accept()
				if err != nil {
					t.Fatal(err)
				}
				word := []byte{'w', byte(shard)}
				if _, err := c.Write(word); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, len(word))
				if _, err := io.ReadFull(other, got); err != nil || string(got) != string(word) {
					t.Fatalf("got %q, %v, want %q", got, err, word)
				}
				if err := from.Close(); err != nil {
					t.Fatal(err)
				}
				if n, err := other.Read(got); err == nil {
					t.Fatalf("got %d bytes of a stream that is closed", n)
				}
			}
			if _, err := a.open(0, nil); err != nil {
				t.Errorf("again: %v", err)
			}
			if _, err := a.open(0, nil); !errors.Is(err, storage.ErrLocked) {
				t.Errorf("twice: got %v, want ErrLocked", err)
			}
		})
	}
}

func TestRefusedStreams(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]bool{"open": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testRefusedStreams(t, secure)
		})
	}
}

func testRefusedStreams(t *testing.T, secure bool) {
	a, b := newPorts(t, secure)
	open(t, b, 1)
	for name, test := range map[string]struct {
		h    hello
		want answer
	}{
		"welcome":       {hello{version: helloVersion, shard: 1, from: nodes[0], to: nodes[1]}, welcome},
		"other version": {hello{version: 9, shard: 1, from: nodes[0], to: nodes[1]}, otherVersion},
		"other node":    {hello{version: helloVersion, shard: 1, from: nodes[0], to: nodes[2]}, otherNode},
		"no log":        {hello{version: helloVersion, shard: 2, from: nodes[0], to: nodes[1]}, noLog},
	} {
		if _, got := b.judge(test.h); got != test.want {
			t.Errorf("%s: got answer %d, want %d", name, got, test.want)
		}
		err := exchangeWith(a, b, test.h)
		if errors.Is(err, os.ErrDeadlineExceeded) { // the machine stood still
			err = exchangeWith(a, b, test.h)
		}
		if said := answers[test.want]; errors.Is(err, errRefused) != (said != "") || err != nil && !strings.Contains(err.Error(), said) {
			t.Errorf("%s: got %v, want %q", name, err, said)
		}
	}
	if _, err := open(t, a, 2).Dial(address(nodes[1]), patience); !errors.Is(err, errRefused) {
		t.Errorf("dial: got %v, want a refusal", err)
	}
}

// exchangeWith begins a stream from one port to another. What takes as long as a port allows is over time, whatever else it is.
func exchangeWith(from, to *Port, h hello) error {
	c, err := net.Dial("tcp", to.Addr().String())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	end := time.Now().Add(handshakeTime)
	if err := c.SetDeadline(end); err != nil {
		return err
	}
	stream := c
	if from.o.TLS != nil {
		config := from.o.TLS.Clone()
		config.ServerName = "127.0.0.1"
		stream = tls.Client(c, config)
	}
	_, err = h.exchange(stream)
	if err != nil && time.Now().After(end) {
		err = fmt.Errorf("%w: %w", os.ErrDeadlineExceeded, err)
	}
	return err
}

// TestSilentStreams opens more streams than may be without a log.
func TestSilentStreams(t *testing.T) {
	t.Parallel()
	a, b := newPorts(t, false)
	open(t, b, 1)
	const more = 8
	closed := make(chan error, maxHandshakes+more)
	silent := make([]net.Conn, maxHandshakes+more)
	for i := range silent {
		c, err := net.Dial("tcp", b.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		silent[i] = c
		go func() {
			_, err := c.Read(make([]byte, 1))
			closed <- err
		}()
	}
	began := time.Now()
	for range more {
		if err := <-closed; !errors.Is(err, io.EOF) && !isReset(err) {
			t.Errorf("got %v", err)
		}
	}
	if took := time.Since(began); took >= handshakeTime {
		t.Errorf("they were closed after %v only", took)
	}
	for _, c := range silent {
		_ = c.Close()
	}
	for range maxHandshakes {
		<-closed
	}
	from := open(t, a, 1)
	for end := time.Now().Add(patience); ; {
		c, err := from.Dial(address(nodes[1]), patience)
		if err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

// TestCloseEndsSilentStreams: Close waits for no stream whose other end says nothing.
func TestCloseEndsSilentStreams(t *testing.T) {
	t.Parallel()
	_, b := newPorts(t, true)
	silent, err := net.Dial("tcp", b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	for end := time.Now().Add(patience); len(b.handshakes) == 0; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("the stream was not accepted")
		}
	}
	began := time.Now()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took >= handshakeTime {
		t.Errorf("closed after %v only", took)
	}
}

// TestStrangers come without a certificate, or with one that somebody else has signed.
func TestStrangers(t *testing.T) {
	t.Parallel()
	_, b := newPorts(t, true)
	open(t, b, 1)
	good := b.o.TLS
	foreign := keys.NewAuthority(t).Config(t, "n1")
	foreign.RootCAs = good.RootCAs
	for name, config := range map[string]*tls.Config{
		"no certificate": {RootCAs: good.RootCAs, MinVersion: tls.VersionTLS13},
		"another signer": foreign,
		"no TLS":         nil,
	} {
		raw, err := net.Dial("tcp", b.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c := raw
		if config != nil {
			config.ServerName = "127.0.0.1"
			c = tls.Client(raw, config)
		}
		if _, err := (hello{version: helloVersion, shard: 1, from: nodes[0], to: nodes[1]}).exchange(c); err == nil {
			t.Errorf("%s: welcome", name)
		}
		_ = raw.Close()
	}
	if _, err := Listen(PortOptions{
		Node: "n9", Listen: "127.0.0.1:0", Address: func(replog.NodeID) string { return "" },
		TLS: &tls.Config{RootCAs: good.RootCAs, MinVersion: tls.VersionTLS13},
	}); !errors.Is(err, ErrOptions) {
		t.Errorf("half of TLS: got %v, want ErrOptions", err)
	}
}

// TestCertificateOfAnother: a node is who its certificate says, by name or by address.
func TestCertificateOfAnother(t *testing.T) {
	t.Parallel()
	authority := keys.NewAuthority(t)
	b, err := Listen(PortOptions{
		Node: nodes[1], Listen: "127.0.0.1:0", TLS: authority.Config(t, "n2"),
		Address: func(id replog.NodeID) string {
			return map[replog.NodeID]string{"n1": "127.0.0.1:1", "n3": "127.0.0.3:1"}[id]
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	open(t, b, 1)
	for name, test := range map[string]struct {
		as      replog.NodeID
		shown   *tls.Config
		refused bool
	}{
		"name":         {"n1", authority.ConfigAt(t, "n1", net.IPv4(127, 0, 0, 9)), false},
		"address":      {"n1", authority.ConfigAt(t, "other", net.IPv4(127, 0, 0, 1)), false},
		"another node": {"n1", authority.ConfigAt(t, "n3", net.IPv4(127, 0, 0, 3)), true},
		"nobody known": {"n9", authority.Config(t, "n1"), true},
	} {
		raw, err := net.Dial("tcp", b.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		test.shown.ServerName = "127.0.0.1"
		_, err = hello{version: helloVersion, shard: 1, from: test.as, to: nodes[1]}.exchange(tls.Client(raw, test.shown))
		if errors.Is(err, errRefused) != test.refused || err != nil && !test.refused {
			t.Errorf("%s: got %v, want a refusal: %t", name, err, test.refused)
		}
		_ = raw.Close()
	}
}

// TestCutInOneDirection holds what goes one way.
func TestCutInOneDirection(t *testing.T) {
	t.Parallel()
	s := newSockets(t, true)
	a, b := open(t, s.ports[nodes[0]], 1), open(t, s.ports[nodes[1]], 1)
	c, err := a.Dial(address(nodes[1]), patience)
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s.link(nodes[0], nodes[1], false)
	say(t, other, c)
	if _, err := c.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := other.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := other.Read(make([]byte, 1)); err == nil {
		t.Fatalf("got %d bytes through a link that is cut", n)
	}
	s.link(nodes[0], nodes[1], true)
	c2, err := a.Dial(raft.ServerAddress(nodes[1]), patience)
	if err != nil {
		t.Fatal(err)
	}
	other2, err := b.Accept()
	if err != nil {
		t.Fatal(err)
	}
	say(t, c2, other2)
}

func say(t *testing.T, from, to net.Conn) {
	t.Helper()
	if _, err := from.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(to, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}
