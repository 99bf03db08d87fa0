//go:build !nopeers

package rows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/partita-go/partita/bench/internal/event"
	"github.com/partita-go/partita/bench/internal/ledger"
	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/bench/internal/natsserver"
	"github.com/partita-go/partita/bench/internal/process"
	"github.com/partita-go/partita/bench/internal/usage"
)

const (
	natsStream = "EVENTS"
	// natsConnections is how many connections the callers share.
	natsConnections = 8
)

// natsRow publishes events to one stream of a NATS server, each to the subject of
// its workspace, and waits for the stream's acknowledgement.
type natsRow struct {
	dir     string
	server  *process.Server
	conns   []*nats.Conn
	streams []jetstream.JetStream // one for each connection
	version string
	sources []*event.Source
	ledger  *ledger.Ledger
}

func newNATS(s measure.Settings) measure.Row {
	return &natsRow{sources: event.NewSources(s.Callers, s.Workspaces), ledger: ledger.New(1)}
}

func (n *natsRow) Setup(ctx context.Context, dir string) error {
	n.dir = filepath.Join(dir, "jetstream")
	url, err := n.start(ctx)
	if err != nil {
		return err
	}
	for range natsConnections {
		conn, err := nats.Connect(url, nats.NoReconnect())
		if err != nil {
			return err
		}
		n.conns = append(n.conns, conn)
		stream, err := jetstream.New(conn)
		if err != nil {
			return err
		}
		n.streams = append(n.streams, stream)
	}
	n.version = n.conns[0].ConnectedServerVersion()
	_, err = n.streams[0].CreateStream(ctx, jetstream.StreamConfig{
		Name:     natsStream,
		Subjects: []string{"workspace.*"},
		Storage:  jetstream.FileStorage,
		Replicas: 1,
	})
	return err
}

// start starts the server and returns its URL.
func (n *natsRow) start(ctx context.Context) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	// The server outlives the context of the setup.
	command := exec.CommandContext(context.WithoutCancel(ctx), self, natsserver.Command, n.dir) //nolint:gosec // it is this program
	line := new(firstLine)
	if n.server, err = process.Start(command, line); err != nil {
		return "", err
	}
	err = n.server.WaitReady(ctx, func(context.Context) error {
		if line.get() == "" {
			return errors.New("it has not said its URL")
		}
		return nil
	})
	return line.get(), err
}

// firstLine keeps the first line that is written to it.
type firstLine struct {
	mu      sync.Mutex
	written strings.Builder
}

func (f *firstLine) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.written.Write(p)
}

// get returns "" until the line is complete.
func (f *firstLine) get() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	line, _, complete := strings.Cut(f.written.String(), "\n")
	if !complete {
		return ""
	}
	return line
}

func (n *natsRow) Do(ctx context.Context, caller int) error {
	s := n.sources[caller]
	subject := fmt.Sprintf("workspace.%d", s.Next())
	ack, err := n.streams[caller%len(n.streams)].Publish(ctx, subject, s.Message())
	if err != nil {
		return err
	}
	return n.ledger.Acknowledge(0, ack.Sequence)
}

func (n *natsRow) Check(ctx context.Context, failed uint64) (string, error) {
	stream, err := n.streams[0].Stream(ctx, natsStream)
	if err != nil {
		return "", err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return "", err
	}
	state := info.State
	if state.Msgs != state.LastSeq || state.FirstSeq != 1 || state.NumDeleted != 0 {
		return "", fmt.Errorf("stream: got %d messages from %d to %d, %d deleted, want all from 1 on", state.Msgs, state.FirstSeq, state.LastSeq, state.NumDeleted)
	}
	if err := n.ledger.Check([]uint64{state.Msgs}, failed); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d messages with sequences 1 to %d, each acknowledged once", state.Msgs, state.LastSeq), nil
}

func (n *natsRow) Sizes() ([]usage.Size, error) {
	size, err := usage.SizeOf(n.dir)
	return []usage.Size{size}, err
}

func (n *natsRow) PID() int { return n.server.PID() }

func (n *natsRow) Note() string {
	return fmt.Sprintf("NATS server %s, nats.go %s over loopback, %d connections; sync_interval always, 1 replica; one global sequence, no offsets of workspaces, no numbers of records",
		n.version, moduleVersion("github.com/nats-io/nats.go"), natsConnections)
}

func (n *natsRow) Close(ctx context.Context) error {
	for _, conn := range n.conns {
		conn.Close()
	}
	if n.server == nil {
		return nil
	}
	return n.server.Stop(ctx, os.Interrupt)
}
