package trio

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/bench/internal/event"
	"github.com/partita-go/partita/cluster"
	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
)

const (
	kindTenant messages.WSKind = 1
	seqOrder   messages.SeqID  = 16

	partitions = 16
	workspaces = 10_000
)

// application is that of bench-append: an event has two new records and three numbers.
func application() partition.Application {
	return partition.Application{WorkspaceZero: true, Descriptor: messages.Descriptor{
		Application: "bench", Partitions: partitions,
		Kinds: []messages.Kind{{ID: kindTenant, Name: "tenant", Sequences: []messages.Sequence{{ID: seqOrder, Name: "order", Initial: 1}}}},
	}}
}

// caller makes one caller's events, and remembers its last one.
type caller struct {
	source  *event.Source
	draft   partition.Draft
	records [event.Records]messages.DraftRecord
	made    uint64
	id      uint64
	// at is where its last event is.
	workspace messages.WSID
	at        messages.WLogOffset
}

// newCallers makes the callers of a node. Their numbers differ from those of other nodes.
func newCallers(c config) []caller {
	all := make([]caller, c.Callers)
	for i := range all {
		one := &all[i]
		one.id = uint64(c.First + i)
		one.source = event.NewSource(c.First+i, workspaces)
		for r := range one.records {
			one.records[r] = messages.DraftRecord{Number: r, New: true}
		}
		one.draft = partition.Draft{
			Wanted:  []messages.Wanted{{Seq: messages.SeqCRecordID, Count: event.Records}, {Seq: seqOrder}},
			Records: one.records[:],
		}
	}
	return all
}

// next makes the caller's next event.
func (c *caller) next(ids bool) partition.AppendTo {
	to := partition.AppendTo{Workspace: messages.WSID(c.source.Next()), Kind: kindTenant, Wait: true}
	c.draft.Body = c.source.Body()
	for r := range c.records {
		c.records[r].Data = c.source.Record(r)
	}
	if c.made++; ids {
		binary.BigEndian.PutUint64(to.DedupID[:], c.id+1)
		binary.BigEndian.PutUint64(to.DedupID[8:], c.made)
	}
	return to
}

// append appends the caller's next event by a function, and waits if that is busy.
func (c *caller) append(
	ctx context.Context, ids bool, by func(context.Context, partition.AppendTo, partition.Draft) (*partition.Appended, error),
) error {
	to := c.next(ids)
	for {
		done, err := by(ctx, to, c.draft)
		if err == nil {
			c.workspace, c.at = to.Workspace, done.WLogOffset
			return nil
		}
		busy, ok := errors.AsType[*partition.BusyError](err)
		if !ok {
			return err
		}
		select {
		case <-time.After(busy.RetryAfter):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// read reads the caller's last event.
func (c *caller) read(ctx context.Context, r *partition.Reader) error {
	e, err := r.WorkspaceEvent(ctx, c.workspace, c.at)
	if err == nil && e.WLogOffset != c.at {
		err = fmt.Errorf("got offset %d, want %d", e.WLogOffset, c.at)
	}
	return err
}

// stored counts the events of a store, whoever owns it.
func stored(ctx context.Context, r *partition.Reader) (count uint64, err error) {
	for p := range messages.PartitionID(partitions) {
		end, err := r.End(replog.Local(ctx), p)
		if err != nil {
			return 0, err
		}
		count += uint64(end)
	}
	return count, nil
}

// alone is partita on one node.
type alone struct {
	callers []caller
	store   *bolt.Store
	parts   *partition.AppParts
	system  *actor.ActorSystem
	app     *partition.App
	reader  *partition.Reader
}

func newAlone(ctx context.Context, c config) (system, error) {
	a := &alone{callers: newCallers(c), system: quiet.NewSystem()}
	application := application()
	var err error
	if a.store, err = bolt.Open(ctx, c.Dir, application.Descriptor, bolt.Options{Create: c.New}); err != nil {
		return nil, err
	}
	a.reader = partition.NewReader(a.store)
	a.parts = partition.NewAppParts(a.system, partition.Options{})
	if a.app, err = a.parts.Deploy(ctx, application, a.store); err != nil {
		return nil, err
	}
	return a, a.app.Ready(ctx)
}

func (a *alone) Append(ctx context.Context, caller int, ids bool) error {
	return a.callers[caller].append(ctx, ids, func(ctx context.Context, to partition.AppendTo, d partition.Draft) (*partition.Appended, error) {
		s, err := a.app.SequencerOf(to.Workspace)
		if err != nil {
			return nil, err
		}
		return s.Append(ctx, to, d)
	})
}

func (a *alone) Leads() bool { return true }

func (a *alone) Stored(ctx context.Context) (uint64, error) { return stored(ctx, a.reader) }

func (a *alone) Close(ctx context.Context) error {
	err := errors.Join(a.parts.Close(ctx), a.store.Close(ctx))
	a.system.Shutdown()
	return err
}

// member is a node of partita.
type member struct {
	callers []caller
	node    *cluster.Node
	reigns  atomic.Uint64
}

func newMember(ctx context.Context, c config) (system, error) {
	m := &member{callers: newCallers(c)}
	peers := make(map[replog.NodeID]string)
	for name, address := range c.Peers {
		peers[replog.NodeID(name)] = address
	}
	var err error
	m.node, err = cluster.Start(ctx, cluster.Options{
		Node: replog.NodeID(c.Name), Peers: peers, Dir: c.Dir, Create: c.New, Application: application(), Failover: c.Failover,

		Lead: func(context.Context, *partition.App) error {
			m.reigns.Add(1)
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (m *member) Append(ctx context.Context, caller int, ids bool) error {
	return m.callers[caller].append(ctx, ids, m.node.Append)
}

func (m *member) Read(ctx context.Context, caller int) error {
	return m.callers[caller].read(ctx, m.node.Reader())
}

func (m *member) Leads() bool { return m.node.Status().Serves }

func (m *member) Transfer(ctx context.Context, to string) error {
	return m.node.Transfer(ctx, replog.NodeID(to))
}

func (m *member) Head() uint64 { return m.node.Status().Head }

func (m *member) Reigns() uint64 { return m.reigns.Load() }

func (m *member) Stored(ctx context.Context) (uint64, error) { return stored(ctx, m.node.Reader()) }

func (m *member) Close(ctx context.Context) error { return m.node.Close(ctx) }
