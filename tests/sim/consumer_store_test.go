package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// laneStore is what a lane has of a store.
type laneStore struct {
	*store
	run *laneRun
}

func (st *laneStore) call(o op, what string) call {
	return call{op: o, partition: st.run.model.partition, what: what, who: st.run.key.ID, lanes: []*laneRun{st.run}}
}

func (st *laneStore) Subscription(ctx context.Context, name string) (storage.Subscription, error) {
	return do(ctx, st.store, st.call(opLoad, name), func() (storage.Subscription, error) { return st.disk.Subscription(ctx, name) })
}

// MoveSubscription is not known to be done until it has answered.
func (st *laneStore) MoveSubscription(ctx context.Context, m storage.SubscriptionMove) error {
	if st.s.isDead(st.node) {
		return storage.ErrClosed
	}
	model := st.run.model
	before := model.broken
	model.broken = true
	c := st.call(opMove, fmt.Sprintf("%s to %v, %d parked, stopped %v", m.Name, m.Next, len(m.Park), m.Stopped != nil))
	_, err := do(ctx, st.store, c, func() (struct{}, error) {
		stood, _ := st.disk.Subscription(ctx, m.Name)
		err := st.disk.MoveSubscription(ctx, m)
		if errors.Is(err, storage.ErrSubscription) {
			st.s.failf("%v: %v", st.run.key, err)
		}
		if err == nil {
			model.moved(st.run, &stood, &m)
		}
		return struct{}{}, err
	})
	if err == nil {
		// What was handled behind the new position was left behind by an earlier failure.
		model.broken = before && len(model.done) > 0
	}
	return err
}

func (st *laneStore) PLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return st.read(ctx, fmt.Sprintf("from %d", from), st.disk.PLog(ctx, p, from))
}

func (st *laneStore) WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	return st.read(ctx, fmt.Sprintf("workspace %d from %d", ws, from), st.disk.WLog(ctx, ws, from))
}

// read gives some events before it fails.
func (st *laneStore) read(ctx context.Context, what string, seq iter.Seq2[messages.Event, error]) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		_, err := do(ctx, st.store, st.call(opRead, what), func() (struct{}, error) { return struct{}{}, nil })
		left := -1
		if err != nil && !st.s.isDead(st.node) {
			left = st.s.random.IntN(4)
		} else if err != nil {
			left = 0
		}
		for e, broken := range seq {
			if left == 0 {
				break
			}
			left--
			if !yield(e, broken) {
				return
			}
		}
		if err != nil {
			yield(messages.Event{}, err)
		}
	}
}

func (st *laneStore) AwaitPLog(ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error {
	return st.wait(ctx, st.call(opAwait, fmt.Sprintf("offset %d", offset)), func() bool { return has(st.disk.PLog(context.Background(), p, offset)) })
}

func (st *laneStore) AwaitWLog(ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error {
	return st.wait(ctx, st.call(opAwait, fmt.Sprintf("workspace %d offset %d", ws, offset)), func() bool {
		return has(st.disk.WLog(context.Background(), ws, offset))
	})
}

func has(events iter.Seq2[messages.Event, error]) bool {
	for range events {
		return true
	}
	return false
}

// wait is woken by the scheduler when there is what a call waits for.
func (st *store) wait(ctx context.Context, c call, there func() bool) error {
	_, err := do(ctx, st, c, func() (struct{}, error) {
		t := &task{node: st.node, key: st.key(&c), ctx: ctx, ready: func() bool { return st.node.broken || there() }}
		return struct{}{}, st.await(ctx, t)
	})
	return err
}

// The calls of whoever changes where a subscription stands.

func (c *consumer) store(n *node) *store { return &store{s: c.s, node: n, disk: c.s.disk} }

func (c *consumer) call(o op, lanes []*laneRun, what string) call {
	return call{op: o, partition: c.models[0].partition, what: c.name() + what, who: c.name(), lanes: lanes}
}

func (c *consumer) look(ctx context.Context, n *node, lanes []*laneRun) (storage.Subscription, error) {
	st := c.store(n)
	return do(ctx, st, c.call(opLook, lanes, ""), func() (storage.Subscription, error) { return st.disk.Subscription(ctx, c.name()) })
}

// move changes where the subscription stands.
func (c *consumer) move(ctx context.Context, n *node, lanes []*laneRun, m storage.SubscriptionMove) error {
	m.Name = c.name()
	st := c.store(n)
	what := fmt.Sprintf(" to %v, %d parked, %d parked no more", m.Next, len(m.Park), len(m.Unpark))
	if m.Stopped != nil {
		what += fmt.Sprintf(", stopped %q", *m.Stopped)
	}
	_, err := do(ctx, st, c.call(opChange, lanes, what), func() (struct{}, error) {
		err := st.disk.MoveSubscription(ctx, m)
		if err == nil {
			c.changed(&m)
		}
		return struct{}{}, err
	})
	return err
}

// put makes the subscription unless it is there.
func (c *consumer) put(ctx context.Context, n *node, made storage.Subscription) error {
	st := c.store(n)
	_, err := do(ctx, st, c.call(opMake, nil, fmt.Sprintf(" at %v", made.Next)), func() (struct{}, error) {
		_, missing := st.disk.Subscription(ctx, c.name())
		err := st.disk.PutSubscription(ctx, made)
		if err == nil && missing != nil {
			c.begunAnew()
		}
		return struct{}{}, err
	})
	return err
}

func (c *consumer) remove(ctx context.Context, n *node, lanes []*laneRun) error {
	st := c.store(n)
	_, err := do(ctx, st, c.call(opDelete, lanes, ""), func() (struct{}, error) {
		return struct{}{}, st.disk.DeleteSubscription(ctx, c.name())
	})
	return err
}

// log gives the events of one of the subscription's logs from an offset on, with their
// offsets there.
func (m *laneModel) log(from uint64) iter.Seq2[uint64, messages.Event] {
	c := m.consumer
	events := c.s.disk.PLog(context.Background(), m.partition, messages.PLogOffset(from))
	if c.made.Workspace != nil {
		events = c.s.disk.WLog(context.Background(), *c.made.Workspace, messages.WLogOffset(from))
	}
	return func(yield func(uint64, messages.Event) bool) {
		for e, err := range events {
			if err != nil {
				c.s.failf("read the log of %s: %v", c.name(), err)
				return
			}
			if !yield(from, e) {
				return
			}
			from++
		}
	}
}
