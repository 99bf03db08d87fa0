package cluster

import (
	"context"
	"errors"
	"iter"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// whole is what this node has of all partitions, if there are several shards. It is another one when a shard was mended: what
// it remembers may be of a store that was replaced.
type whole struct {
	reader *partition.Reader
	api    *httpapi.API
}

// makeWhole makes it anew, when all shards are open.
func (n *Node) makeWhole() error {
	if len(n.shards) == 1 {
		return nil
	}
	for _, s := range n.shards {
		if s.part() == nil {
			return nil
		}
	}
	w := &whole{reader: partition.NewReader(union{n})}
	var err error
	if w.api, err = httpapi.NewReplica(w.reader, n.o.HTTP); err != nil {
		return err
	}
	if before := n.all.Swap(w); before != nil {
		before.api.Stop()
	}
	if n.serving.Err() != nil {
		w.api.Stop()
	}
	return nil
}

// local answers reads of what this node has.
func (n *Node) local() *httpapi.API {
	if w := n.all.Load(); w != nil {
		return w.api
	}
	return n.shards[0].part().api
}

// union is the stores of all shards, as one that is read: each partition is read where it is. It implements
// [storage.Store], of which a reader needs no more.
type union struct{ n *Node }

func (u union) of(p messages.PartitionID) storage.Store { return u.n.ShardOf(p).part().store }
func (u union) with(ws messages.WSID) storage.Store     { return u.n.shardOf(ws).part().store }

// Descriptor implements [storage.Store].
func (u union) Descriptor() messages.Descriptor { return u.n.shards[0].part().store.Descriptor() }

// Claim implements [storage.Store]: each store is deployed by itself.
func (u union) Claim(string) (func(), error) { return nil, errors.ErrUnsupported }

// Close implements [storage.Store]: each store is closed by itself.
func (u union) Close(context.Context) error { return errors.ErrUnsupported }

// TakeEpoch implements [storage.Log].
func (u union) TakeEpoch(ctx context.Context, p messages.PartitionID) (storage.Register, error) {
	return u.of(p).TakeEpoch(ctx, p)
}

// Append implements [storage.Log].
func (u union) Append(ctx context.Context, b storage.Batch) error {
	return u.of(b.Partition).Append(ctx, b)
}

// Flush implements [storage.Projections].
func (u union) Flush(ctx context.Context, f storage.Flush) error {
	return u.of(f.Partition).Flush(ctx, f)
}

// Numbers implements [storage.Projections].
func (u union) Numbers(ctx context.Context, ws messages.WSID, of ...messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
	return u.with(ws).Numbers(ctx, ws, of...)
}

// Register implements [storage.Reader].
func (u union) Register(ctx context.Context, p messages.PartitionID) (storage.Register, error) {
	return u.of(p).Register(ctx, p)
}

// Tail implements [storage.Reader].
func (u union) Tail(ctx context.Context, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Numbering, error) {
	return u.of(p).Tail(ctx, p, from, limit)
}

// PLog implements [storage.Reader].
func (u union) PLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return u.of(p).PLog(ctx, p, from)
}

// WLog implements [storage.Reader].
func (u union) WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	return u.with(ws).WLog(ctx, ws, from)
}

// Records implements [storage.Reader].
func (u union) Records(ctx context.Context, ws messages.WSID, r storage.RecordRange) iter.Seq2[storage.Row, error] {
	return u.with(ws).Records(ctx, ws, r)
}

// Find implements [storage.Reader].
func (u union) Find(ctx context.Context, ws messages.WSID, id messages.DedupID) (messages.WLogOffset, error) {
	return u.with(ws).Find(ctx, ws, id)
}

// AwaitPLog implements [storage.Watcher].
func (u union) AwaitPLog(ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error {
	return u.of(p).AwaitPLog(ctx, p, offset)
}

// AwaitWLog implements [storage.Watcher].
func (u union) AwaitWLog(ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error {
	return u.with(ws).AwaitWLog(ctx, ws, offset)
}

// AwaitAny implements [storage.Watcher]. It counts what each store has, and waits for more in any of them.
func (u union) AwaitAny(ctx context.Context, seen uint64) (uint64, error) {
	counts := make([]uint64, len(u.n.shards))
	for i, s := range u.n.shards {
		var err error
		if counts[i], err = s.events(ctx); err != nil {
			return 0, err
		}
	}
	for {
		all := uint64(0)
		for _, n := range counts {
			all += n
		}
		if all > seen {
			return all, nil
		}
		if err := u.awaitMore(ctx, counts); err != nil {
			return 0, err
		}
	}
}

// awaitMore waits until a store has more than was counted, and counts that.
func (u union) awaitMore(ctx context.Context, counts []uint64) error {
	type grown struct {
		shard  int
		events uint64
		err    error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := make(chan grown, len(counts))
	for i, s := range u.n.shards {
		go func(seen uint64) {
			events, err := s.part().store.AwaitAny(ctx, seen)
			first <- grown{i, events, err}
		}(counts[i])
	}
	g := <-first
	if g.err == nil {
		counts[g.shard] = g.events
	}
	return g.err
}

// events returns how many events this node has of the shard.
func (s *Shard) events(ctx context.Context) (all uint64, err error) {
	store := s.part().store
	for _, p := range s.Owned() {
		register, err := store.Register(replog.Local(ctx), p)
		if err != nil {
			return 0, err
		}
		all += uint64(register.Last)
	}
	return all, nil
}
