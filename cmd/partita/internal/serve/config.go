package serve

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/cmd/partita/internal/config"
	"github.com/partita-go/partita/dumps"
	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/logs"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
)

// ErrConfig is returned when a configuration is wrong, or not safe. Nothing was opened.
var ErrConfig = config.ErrConfig

// minToken is how short a token may be, in bytes: one of 128 bits in hexadecimal is longer.
const minToken = 16

// Config says what is served, where, and to whom. Every field but the token, the files of the
// certificate, what is about dumps, metrics, alarms and restarts, and the node of traces must be set.
type Config struct {
	// Dir is the directory of the store.
	Dir string
	// Descriptor is the file that says what the store must be, which it may extend. Empty: as the store has it.
	Descriptor string
	// Create lets a new store be made of the descriptor if there is none.
	Create bool
	// Listen is the address to listen on, as host:port. The host is an IP address, localhost
	// or, for all addresses, nothing. Any but a loopback address needs a certificate and a
	// token.
	Listen string
	// CertFile and KeyFile have the certificate and its key as PEM. Without them there is
	// no TLS. They are read again at a hangup.
	CertFile, KeyFile string
	// Token is what every request must bring; if it is empty, none. If there is a TokenFile, the token is what that has,
	// and is read again at a hangup.
	Token, TokenFile string
	// Logs say which log lines are written, by group: see [logs.Logs]. Nil means those from warn on.
	Logs map[string]logs.Group
	// LogJSON says that log lines are JSON.
	LogJSON bool
	// Dump is the file that messages of actors are written to; if it is empty, none are.
	Dump string
	// Dumps say how, see [dumps.Options].
	Dumps dumps.Options
	// Keys are the groups of actors of which each has metrics of its own.
	Keys []string
	// Settings, Application and Store are those of the partitions, the application and the store.
	Settings    partition.Settings
	Application config.Application
	Store       bolt.Options
	// Hangups tell that the configuration, the certificate and the token are to be read again, and the dump to be opened anew.
	Hangups <-chan os.Signal
	// Connections is how many connections there may be at the same time. At most a quarter of
	// them are streams, an eighth are operations, and half of them wait for an event: the rest is left for appends.
	Connections int
	// Origins are the web pages, as https://shop.example, that may ask the server from a browser. Default: none.
	Origins []string
	// TraceNode is the node's number in the trace ids that requests get: no other server has it. Nil means that they
	// get none.
	TraceNode *uint16
	// AlarmAfter, RestartDelay and Restarts are as in [partition.Options].
	AlarmAfter, RestartDelay time.Duration
	Restarts                 map[string]partition.RestartPolicy
	// Node says which node of several this is. Default: it is alone.
	Node Node
	// Scrub says how the store is scrubbed. Default: not at all.
	Scrub Scrubbing
	// Operations are what an operator can ask of a store, which is in a directory. Default: nothing.
	Operations func(dir string, store *bolt.Store) []Operation

	// source is where all of this comes from, as loaded says; nil if it cannot change.
	source *config.Source
	loaded *config.Loaded
}

// application returns what is deployed.
func (c *Config) application(d messages.Descriptor) partition.Application {
	return partition.Application{
		Descriptor: d, Settings: c.Settings, CacheNumbers: c.Application.CacheNumbers, Actualizations: c.Application.Actualizations,
		RequestLane: c.Application.RequestLane, RequestLaneBytes: c.Application.RequestLaneBytes,
	}
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

// Check returns ErrConfig if it is wrong, or not safe.
func (c *Config) Check() error {
	_, err := c.check()
	return err
}

// check returns where to listen, or ErrConfig.
func (c *Config) check() (p place, err error) {
	if err := checkOrigins(c.Origins); err != nil {
		return p, err
	}
	if err := checkDump(c.Dump, c.Dir); err != nil {
		return p, err
	}
	if c.Descriptor != "" {
		if p.descriptor, err = config.ReadDescriptor(c.Descriptor); err != nil {
			return p, err
		}
	}
	if p.address, err = parseAddress(c.Listen); err != nil {
		return p, err
	}
	if p.secrets, err = c.readSecrets(); err != nil {
		return p, err
	}
	if p.peers, p.peerTLS, err = c.Node.check(c.Descriptor); err != nil {
		return p, err
	}
	if !p.address.IP.IsLoopback() && (p.certificate == nil || p.token == "") {
		return p, fmt.Errorf("%w: address %.80q is not a loopback address: it needs a certificate and a token", ErrConfig, c.Listen)
	}
	return p, nil
}

// place is where a server listens, what it serves, and by what it begins to know its clients and they it.
type place struct {
	address *net.TCPAddr
	// descriptor is that of the file, if there is one.
	descriptor messages.Descriptor
	secrets
	// peers are where all nodes listen for each other, by what TLS; nil if there is one.
	peers   map[replog.NodeID]string
	peerTLS *tls.Config
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
