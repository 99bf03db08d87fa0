//go:build !nopeers

package trio

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/partita-go/partita/bench/internal/event"
)

const (
	natsStream = "EVENTS"
	// natsConnections is how many connections the callers of a node share.
	natsConnections = 8
	// startLimit is how long a peer may take to start.
	startLimit = time.Minute
)

// natsNode is a NATS server that has a stream with two others, synced after each message.
type natsNode struct {
	config  config
	server  *server.Server
	conns   []*nats.Conn
	streams []jetstream.JetStream // one for each connection
	sources []*event.Source
	made    []uint64
}

func newNATS(ctx context.Context, c config) (system, error) {
	n := &natsNode{config: c, sources: newSources(c), made: make([]uint64, c.Callers)}
	host, port, err := hostPort(c.Peers[c.Name])
	if err != nil {
		return nil, err
	}
	var routes []*url.URL
	for name, address := range c.Peers {
		if name != c.Name {
			routes = append(routes, &url.URL{Scheme: "nats", Host: address})
		}
	}
	n.server, err = server.NewServer(&server.Options{
		ServerName: c.Name, Host: host, Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: c.Dir, SyncAlways: true,
		Cluster: server.ClusterOpts{Name: "bench", Host: host, Port: port}, Routes: routes,
	})
	if err != nil {
		return nil, err
	}
	n.server.Start()
	if !n.server.ReadyForConnections(startLimit) {
		return nil, errors.New("NATS is not ready for connections")
	}
	for range natsConnections {
		if err := n.connect(); err != nil {
			return nil, err
		}
	}
	return n, n.join(ctx)
}

func (n *natsNode) connect() error {
	conn, err := nats.Connect("", nats.InProcessServer(n.server), nats.NoReconnect())
	if err != nil {
		return err
	}
	stream, err := jetstream.New(conn)
	n.conns, n.streams = append(n.conns, conn), append(n.streams, stream)
	return err
}

// join waits until the stream is there, which the first of the nodes makes.
func (n *natsNode) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	config := jetstream.StreamConfig{
		Name: natsStream, Subjects: []string{"workspace.*"}, Storage: jetstream.FileStorage, Replicas: len(n.config.Peers),
	}
	for {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := n.streams[0].CreateOrUpdateStream(try, config)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("stream: %w", err)
		}
	}
}

func (n *natsNode) Append(ctx context.Context, caller int, ids bool) error {
	source := n.sources[caller]
	subject := fmt.Sprintf("workspace.%d", source.Next())
	var options []jetstream.PublishOpt
	if n.made[caller]++; ids {
		options = append(options, jetstream.WithMsgID(fmt.Sprintf("%d-%d", n.config.First+caller, n.made[caller])))
	}
	options = append(options, jetstream.WithRetryAttempts(0))
	stream := n.streams[caller%len(n.streams)]
	return again(ctx, n.config.Failover, ids, func(ctx context.Context) error {
		_, err := stream.Publish(ctx, subject, source.Message(), options...)
		return err
	})
}

func (n *natsNode) info() (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	stream, err := n.streams[0].Stream(ctx, natsStream)
	if err != nil {
		return nil, err
	}
	return stream.CachedInfo(), nil
}

func (n *natsNode) Leads() bool {
	info, err := n.info()
	return err == nil && info.Cluster != nil && info.Cluster.Leader == n.config.Name
}

func (n *natsNode) Stored(context.Context) (uint64, error) {
	info, err := n.info()
	if err != nil {
		return 0, err
	}
	return info.State.Msgs, nil
}

func (n *natsNode) Close(context.Context) error {
	for _, conn := range n.conns {
		conn.Close()
	}
	n.server.Shutdown()
	n.server.WaitForShutdown()
	return nil
}

func hostPort(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.Atoi(text)
	return host, port, err
}
