package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
)

// MaxShards is how many shards an application may have. Each has files of its own on each node, and syncs them by itself: a
// few are enough for as many nodes.
const MaxShards = 64

// shardsName is the file in a node's directory that says how many shards there are. Where there is one it is missing.
const shardsName = "shards"

// ShardDir returns where a node's store of a shard is: a directory as that of one node alone, to be verified, inspected and
// backed up. The partitions of other shards are empty in it.
func ShardDir(dir string, shard int) string {
	return filepath.Join(dir, fmt.Sprintf("shard-%d", shard))
}

// StoreDir returns where a node's store is, of the first shard.
func StoreDir(dir string) string { return ShardDir(dir, 0) }

func raftDir(dir string, shard int) string { return filepath.Join(dir, fmt.Sprintf("raft-%d", shard)) }

// groupOf names the log of a shard among those of the node's port, and in its entries. It has the number of shards in it:
// nodes that differ about that must not be in one log, where they would take the same partition for their own.
func groupOf(shard, shards int) replog.Shard {
	if shards == 1 {
		return 0
	}
	return replog.Shard(shards<<16 | shard)
}

// settleShards refuses a directory that was made with another number of shards. That of a new one is noted before anything
// else is made. Stores alone, of backups, are as many shards as there are.
func (n *Node) settleShards() error {
	name := filepath.Join(n.o.Dir, shardsName)
	text, err := os.ReadFile(name)
	switch {
	case err == nil:
		return n.checkShards(name, strings.TrimSpace(string(text)))
	case !errors.Is(err, os.ErrNotExist):
		return err
	case !isMissing(raftDir(n.o.Dir, 0)):
		return n.checkShards(n.o.Dir, "1")
	}
	stores, err := n.stores()
	if err == nil && stores > 0 {
		err = n.checkShards(n.o.Dir, strconv.Itoa(stores))
	}
	if err != nil {
		return err
	}
	if n.o.Shards == 1 || !n.o.Create && !n.o.Join {
		return nil
	}
	if err := os.MkdirAll(n.o.Dir, 0o700); err != nil {
		return err
	}
	return writeFile(name, strconv.Itoa(n.o.Shards)+"\n")
}

// stores returns how many stores there are. It refuses those of some shards only: the shard that has none would begin anew.
func (n *Node) stores() (count int, err error) {
	for i := range MaxShards {
		if isMissing(ShardDir(n.o.Dir, i)) {
			continue
		}
		if count < i {
			return 0, fmt.Errorf("%w: Dir: got %s, want %s too: it is missing",
				ErrOptions, ShardDir(n.o.Dir, i), ShardDir(n.o.Dir, count))
		}
		count++
	}
	return count, nil
}

func (n *Node) checkShards(where, got string) error {
	if got != strconv.Itoa(n.o.Shards) {
		return fmt.Errorf("%w: Shards: %s was made with %.20q, want it as Options has it: %d", ErrOptions, where, got, n.o.Shards)
	}
	return nil
}

// writeFile makes a file, whole or not at all.
func writeFile(name, text string) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".new")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(name))
}

// Shards returns what this node has of each shard, by number. It is one, unless Options.Shards says more.
func (n *Node) Shards() []*Shard { return append([]*Shard(nil), n.shards...) }

// ShardOf returns the shard of a partition: the partition's number mod Options.Shards.
func (n *Node) ShardOf(p messages.PartitionID) *Shard {
	return n.shards[uint64(p)%uint64(len(n.shards))]
}

// shardOf returns that of a workspace.
func (n *Node) shardOf(ws messages.WSID) *Shard {
	return n.ShardOf(messages.PartitionOf(ws, n.o.Application.Descriptor.Partitions))
}

// AppOf returns the application that runs a partition, while that is on this node: see [Shard.App].
func (n *Node) AppOf(p messages.PartitionID) (*partition.App, error) { return n.ShardOf(p).App() }

// only returns the only shard, or ErrShards.
func (n *Node) only() (*Shard, error) {
	if len(n.shards) > 1 {
		return nil, fmt.Errorf("%w: got %d of them", ErrShards, len(n.shards))
	}
	return n.shards[0], nil
}

// owning is a store that has the partitions of a shard only.
type owning struct {
	*bolt.Store
	owned []messages.PartitionID
}

// Owned implements [storage.Sharded].
func (o *owning) Owned() []messages.PartitionID { return o.owned }

// checkOwned refuses a store that has events of other shards: it is of other backups than it should be.
func (s *Shard) checkOwned(ctx context.Context, store *bolt.Store) error {
	for p := range messages.PartitionID(s.o.Application.Descriptor.Partitions) {
		of := s.node.ShardOf(p)
		if of == s {
			continue
		}
		register, err := store.Register(replog.Local(ctx), p)
		if err != nil {
			return err
		}
		if register.Last > 0 {
			return fmt.Errorf("%w: %s has %d events of partition %d, want none: it is in shard %d of %d",
				storage.ErrForeign, s.dir(), register.Last, p, of.index, len(s.node.shards))
		}
	}
	return nil
}

// Index is the shard's number, from 0 on.
func (s *Shard) Index() int { return s.index }

// Owned returns the partitions of the shard, in order of their ids.
func (s *Shard) Owned() (all []messages.PartitionID) {
	for p := s.index; p < int(s.o.Application.Descriptor.Partitions); p += len(s.node.shards) {
		all = append(all, messages.PartitionID(p))
	}
	return all
}

// each asks all shards at the same time, and returns what they say, in their order.
func each[T any](n *Node, ask func(*Shard) T) []T {
	all := make([]T, len(n.shards))
	var asked sync.WaitGroup
	for i, s := range n.shards {
		asked.Go(func() { all[i] = ask(s) })
	}
	asked.Wait()
	return all
}
