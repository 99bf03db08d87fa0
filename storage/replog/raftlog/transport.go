package raftlog

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"

	"github.com/hashicorp/raft"
)

// transport is raft's way to the other nodes, which notes who says that this node leads.
type transport struct {
	raft.Transport
	admission admission
	acks      acks
	absent    absent
	// follows reports whether a node follows this one, which leads in a term of raft's.
	follows func(id raft.ServerID, term uint64) bool
	// closed is closed when the log is.
	closed    chan struct{}
	closeOnce sync.Once
}

// rpcTime is how long a request may take, in failovers: a long one carries up to 32 entries.
const rpcTime = 10

// pooledStreams is how many streams to another node are kept that nobody uses.
const pooledStreams = 3

// newTransport is the one through the node's port, or the test's.
func newTransport(o Options, known *peers) (*transport, error) {
	if o.transport != nil {
		return wrap(o.transport()), nil
	}
	s, err := o.Port.open(o.Shard, known)
	if err != nil {
		return nil, err
	}
	return wrap(raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, MaxPool: pooledStreams, Timeout: rpcTime * o.Failover, Logger: newLogger(o.Logger),
		MsgpackUseNewTimeFormat: true,
		// No pipelines: there is one entry in flight, and raft 1.8 can hang in them when it is closed. Its sender waits for
		// netPipeline.decodeResponses, which waits for a reader that has gone after an answer of a newer term.
		MaxRPCsInFlight: 1,
	})), nil
}

func wrap(t raft.Transport) *transport {
	return &transport{Transport: t, admission: admission{to: make(chan raft.RPC)}, closed: make(chan struct{})}
}

// Consumer implements [raft.Transport].
func (t *transport) Consumer() <-chan raft.RPC { return t.admission.to }

// AppendEntries implements [raft.Transport]. Heartbeats go this way.
func (t *transport) AppendEntries(
	id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	// Raft goes by what it finds in the request then. A heartbeat's is used again, and its receiver may still have it.
	if some := together(args.Entries); len(some) < len(args.Entries) {
		args.Entries = some
	}
	if !isHeartbeat(args) {
		t.absent.await(id, t.closed, func() bool { return !t.follows(id, args.Term) })
	}
	asked := t.acks.now()
	err := t.Transport.AppendEntries(id, target, args, resp)
	if t.absent.note(id, err); err != nil {
		return err
	}
	if resp.Success && resp.Term == args.Term {
		has := args.PrevLogEntry
		if n := len(args.Entries); n > 0 {
			has = args.Entries[n-1].Index
		}
		t.acks.add(id, args.Term, asked, has)
	}
	return nil
}

// together returns those of the entries that travel together. Raft counts them only, and one may have megabytes.
func together(entries []*raft.Log) []*raft.Log {
	bytes := 0
	for i, e := range entries {
		if bytes += len(e.Data); bytes > maxAppendBytes && i > 0 {
			return entries[:i]
		}
	}
	return entries
}

// RequestPreVote implements [raft.WithPreVote]. Both transports do.
func (t *transport) RequestPreVote(
	id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	return again(func() error {
		return t.Transport.(raft.WithPreVote).RequestPreVote(id, target, args, resp) //nolint:errcheck // they do
	})
}

// RequestVote implements [raft.Transport].
func (t *transport) RequestVote(
	id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse,
) error {
	return again(func() error { return t.Transport.RequestVote(id, target, args, resp) })
}

// again asks until it is sure that the stream was not an old one, of a node that was started again since. Raft takes no answer
// for a refusal, and asks anew a failover later. TimeoutNow is not asked again: a node that has heard it may lead already, and
// would begin another election.
func again(ask func() error) (err error) {
	for range pooledStreams + 1 {
		if err = ask(); err == nil || !hasBroken(err) {
			break
		}
	}
	return err
}

// hasBroken reports whether the other end of a stream is gone.
func hasBroken(err error) bool {
	for _, gone := range []error{io.EOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

// Close implements [raft.WithClose].
func (t *transport) Close() error {
	t.closeOnce.Do(func() { close(t.closed) })
	return t.Transport.(raft.WithClose).Close() //nolint:errcheck // they do
}

// AppendEntriesPipeline implements [raft.Transport]: there are none, so that all goes through AppendEntries.
func (t *transport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}
