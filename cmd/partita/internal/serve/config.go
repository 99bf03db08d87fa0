package serve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/partita-go/partita/dumps"
	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/ids"
)

// ErrConfig is returned when a configuration is wrong, or not safe. Nothing was opened.
var ErrConfig = errors.New("bad configuration")

// minToken is how short a token may be, in bytes: one of 128 bits in hexadecimal is longer.
const minToken = 16

// Config says what is served, where, and to whom. Every field but the token, the files of the
// certificate and the node of traces must be set.
type Config struct {
	// Dir is the directory of the store.
	Dir string
	// Listen is the address to listen on, as host:port. The host is an IP address, localhost
	// or, for all addresses, nothing. Any but a loopback address needs a certificate and a
	// token.
	Listen string
	// CertFile and KeyFile have the certificate and its key as PEM. Without them there is
	// no TLS.
	CertFile, KeyFile string
	// Token is what every request must bring; if it is empty, none.
	Token string
	// Dump is the file that messages of actors are written to; if it is empty, none are. It is opened anew when
	// there is something in Reopen.
	Dump string
	// Dumps say how, see [dumps.Options].
	Dumps  dumps.Options
	Reopen <-chan os.Signal
	// Connections is how many connections there may be at the same time. At most a quarter of
	// them are streams, and half of them wait for an event: the rest is left for appends.
	Connections int
	// TraceNode is the node's number in the trace ids that requests get: no other server has it. Nil means that they
	// get none.
	TraceNode *uint16
}

// traces returns what gives trace ids, nil if nothing does.
func (c *Config) traces() *ids.TraceGenerator {
	if c.TraceNode == nil {
		return nil
	}
	return ids.NewTraceGenerator(*c.TraceNode, ids.TraceOptions{})
}

// options returns those of the API.
func (c *Config) options(logger *zap.Logger) httpapi.Options {
	o := httpapi.Options{Logger: logger}.WithDefaults()
	o.Streams = max(1, min(o.Streams, c.Connections/4))
	o.LongPolls = max(1, min(o.LongPolls, c.Connections/2))
	return o
}

// place is where a server listens.
type place struct {
	address *net.TCPAddr
	// tls is nil without TLS.
	tls *tls.Config
}

// check returns where to listen, or ErrConfig.
func (c *Config) check() (p place, err error) {
	if c.Token != "" && len(c.Token) < minToken {
		return p, fmt.Errorf("%w: token: got %d bytes, want at least %d", ErrConfig, len(c.Token), minToken)
	}
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return p, fmt.Errorf("%w: token: it has a space or a character that is not printable ASCII, which no client can send", ErrConfig)
	}
	if p.address, err = parseAddress(c.Listen); err != nil {
		return p, err
	}
	if p.tls, err = c.loadTLS(); err != nil {
		return p, err
	}
	if !p.address.IP.IsLoopback() && (p.tls == nil || c.Token == "") {
		return p, fmt.Errorf("%w: address %.80q is not a loopback address: it needs a certificate and a token", ErrConfig, c.Listen)
	}
	return p, nil
}

// parseAddress reads an address without asking anybody what a name means.
func parseAddress(text string) (*net.TCPAddr, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return nil, fmt.Errorf("%w: address %.80q: %w", ErrConfig, text, err)
	}
	address := &net.TCPAddr{IP: net.ParseIP(host)}
	switch {
	case host == "localhost":
		address.IP = net.IPv4(127, 0, 0, 1)
	case host != "" && address.IP == nil:
		return nil, fmt.Errorf("%w: address %.80q: want an IP address, localhost or nothing before the port", ErrConfig, text)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%w: address %.80q: want a port from 0 to 65535", ErrConfig, text)
	}
	address.Port = int(number)
	return address, nil
}

func (c *Config) loadTLS() (*tls.Config, error) {
	if c.CertFile == "" && c.KeyFile == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	if c.CertFile == "" || c.KeyFile == "" {
		return nil, fmt.Errorf("%w: a certificate and its key are needed, got one of them", ErrConfig)
	}
	certificate, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("%w: certificate: %w", ErrConfig, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, nil
}
