package raftlog

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"github.com/partita-go/partita/storage/replog"
)

// Limits and defaults of [Options].
const (
	// DefaultFailover is how long nobody leads at least when a leader dies.
	DefaultFailover = 500 * time.Millisecond
	// MinFailover is the least, MaxFailover the most.
	MinFailover = 300 * time.Millisecond
	MaxFailover = 5 * time.Second
	// DefaultKeep is how many entries a node keeps for others that were away.
	DefaultKeep = 8192
)

const (
	// maxAppendEntries is how many entries are read for a node that catches up at most, maxAppendBytes how many bytes of them
	// travel together, but for an entry alone.
	maxAppendEntries = 8
	maxAppendBytes   = 4 << 20
	// cachedEntries is how many are in memory, and cachedBytes how many bytes they have, for those who follow closely.
	cachedEntries = 64
	cachedBytes   = 8 << 20
	// keptBytes is how much of the disk raft-wal takes at once for each entry to be kept, leastSegment and mostSegment what it
	// takes at least and at most: it forgets all of that at once.
	keptBytes    = 8 << 10
	leastSegment = 1 << 20
	mostSegment  = 64 << 20
)

// Options are one node's side of one log.
type Options struct {
	// Dir is the directory of this log on this node. [Create] makes it, nobody else writes there.
	Dir string
	// Node is this node, Shard the log. They are what they were when Dir was created.
	Node  replog.NodeID
	Shard replog.Shard
	// Port is this node's, for all its logs. Create does without.
	Port *Port
	// Failover is how long a node waits for a leader that says nothing before it wants to lead: between that and twice that,
	// then the election. Half of it is how long a leader goes on that hears nothing. All nodes need the same. 0 is
	// [DefaultFailover].
	Failover time.Duration
	// Keep is how many entries stay in the log that the replica here does not need any more. A node that was away for more
	// than its leader keeps is told ErrBehind. More of them stay: whole files of the log go, which have 8 KiB for each of these,
	// and 1 to 64 MiB. 0 is [DefaultKeep].
	Keep uint64
	// Logger takes raft's lines. nil drops them.
	Logger *zap.Logger

	// What tests put in the place of the network and around the disk.
	transport   func() raft.Transport
	store       func(raft.LogStore) raft.LogStore
	stable      func(raft.StableStore) raft.StableStore
	segmentSize int
}

// withDefaults returns the options with what 0 stands for, or ErrOptions.
func (o Options) withDefaults() (Options, error) {
	if o.Failover == 0 {
		o.Failover = DefaultFailover
	}
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.segmentSize == 0 {
		o.segmentSize = int(min(max(o.Keep, leastSegment/keptBytes), mostSegment/keptBytes)) * keptBytes
	}
	switch {
	case o.Dir == "":
		return o, fmt.Errorf("%w: Dir is empty", ErrOptions)
	case o.Failover < MinFailover || o.Failover > MaxFailover:
		return o, fmt.Errorf("%w: Failover: got %v, want %v to %v", ErrOptions, o.Failover, MinFailover, MaxFailover)
	case o.Shard == requestShard:
		return o, fmt.Errorf("%w: Shard: got %d, want less", ErrOptions, o.Shard)
	}
	return o, checkNode(o.Node)
}

// checkPort checks the way to the other nodes.
func (o Options) checkPort() error {
	switch {
	case o.transport != nil:
		return nil
	case o.Port == nil:
		return fmt.Errorf("%w: Port is nil", ErrOptions)
	case o.Port.o.Node != o.Node:
		return fmt.Errorf("%w: Port is of node %q, want %q", ErrOptions, o.Port.o.Node, o.Node)
	}
	return nil
}

// checkNode checks a node's name, which must fit into a stream's first bytes.
func checkNode(id replog.NodeID) error {
	if id == "" || len(id) > maxNodeID {
		return fmt.Errorf("%w: name of a node: got %q, want 1 to %d bytes", ErrOptions, id, maxNodeID)
	}
	return nil
}

// raftConfig is what raft is told. All its times are parts of Failover.
func (o Options) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(o.Node)
	c.HeartbeatTimeout = o.Failover
	c.ElectionTimeout = o.Failover
	c.LeaderLeaseTimeout = o.Failover / 2
	c.CommitTimeout = o.Failover / 20
	c.MaxAppendEntries = maxAppendEntries
	c.TrailingLogs = o.Keep
	c.SnapshotThreshold = o.Keep/8 + 1
	c.SnapshotInterval = 10 * o.Failover
	c.NoSnapshotRestoreOnStart = true
	c.NoLegacyTelemetry = true
	c.Logger = newLogger(o.Logger)
	return c
}

// address is a node's for raft: its name. Where it is the [Port] knows, so that it may move.
func address(id replog.NodeID) raft.ServerAddress { return raft.ServerAddress(id) }
