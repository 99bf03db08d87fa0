package storagetest

import (
	"context"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/internal/watch"
)

// tell wakes those who wait for events that were written. The caller holds the lock.
func (d *disk) tell(p messages.PartitionID, events []messages.Event) {
	d.board.Ring(func(ring func(watch.Topic)) {
		ring(watch.Topic{Log: watch.Any})
		ring(watch.Topic{Log: watch.Partition, ID: uint64(p)})
		for i := range events {
			ring(watch.Topic{Log: watch.Workspace, ID: uint64(events[i].Workspace)})
		}
	})
}

// AwaitPLog waits until a partition's log has come to an offset.
func (m *Memory) AwaitPLog(ctx context.Context, id messages.PartitionID, offset messages.PLogOffset) error {
	return m.disk.board.Await(ctx, watch.Topic{Log: watch.Partition, ID: uint64(id)}, func() (bool, error) {
		p, unlock, err := m.partition(ctx, id)
		if err != nil {
			return false, err
		}
		defer unlock()
		return p.last() >= max(offset, 1), nil
	})
}

// AwaitWLog waits until a workspace's log has come to an offset.
func (m *Memory) AwaitWLog(ctx context.Context, id messages.WSID, offset messages.WLogOffset) error {
	return m.disk.board.Await(ctx, watch.Topic{Log: watch.Workspace, ID: uint64(id)}, func() (bool, error) {
		unlock, err := m.lock(ctx)
		if err != nil {
			return false, err
		}
		defer unlock()
		ws := m.disk.workspaces[id]
		return ws != nil && messages.WLogOffset(len(ws.wlog)) >= max(offset, 1), nil
	})
}

// AwaitAny waits until the store has more events than seen, and returns how many.
func (m *Memory) AwaitAny(ctx context.Context, seen uint64) (events uint64, err error) {
	err = m.disk.board.Await(ctx, watch.Topic{Log: watch.Any}, func() (bool, error) {
		unlock, err := m.lock(ctx)
		if err != nil {
			return false, err
		}
		defer unlock()
		events = m.disk.events
		return events > seen, nil
	})
	return events, err
}
