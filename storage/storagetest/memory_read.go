package storagetest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/internal/watch"
)

// Tail returns what the events from an offset on say about sequences. A limit
// below 1 is taken for 1.
func (m *Memory) Tail(ctx context.Context, id messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Numbering, error) {
	p, unlock, err := m.partition(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if from < p.checkpoint {
		return nil, fmt.Errorf("%w: partition %d: got tail from %d, want at least %d", storage.ErrCheckpoint, id, from, p.checkpoint)
	}
	events := suffix(p.log, uint64(from))
	events = events[:min(len(events), max(1, limit))]
	tail := make([]messages.Numbering, len(events))
	for i, e := range events {
		tail[i] = e.Numbering()
		tail[i].Numbers = slices.Clone(tail[i].Numbers)
	}
	return tail, nil
}

// PLog returns the partition's events as they stand when the loop begins.
func (m *Memory) PLog(ctx context.Context, id messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return yieldEvents(ctx, func() ([]*messages.Event, error) {
		p, unlock, err := m.partition(ctx, id)
		if err != nil {
			return nil, err
		}
		defer unlock()
		return suffix(p.log, uint64(from)), nil
	})
}

// WLog returns the workspace's events as they stand when the loop begins.
func (m *Memory) WLog(ctx context.Context, id messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	return yieldEvents(ctx, func() ([]*messages.Event, error) {
		unlock, err := m.lock(ctx)
		if err != nil {
			return nil, err
		}
		defer unlock()
		ws := m.disk.workspaces[id]
		if ws == nil {
			return nil, nil
		}
		return suffix(ws.wlog, uint64(from)), nil
	})
}

// Records returns the rows of a range as they stand when the loop begins.
func (m *Memory) Records(ctx context.Context, id messages.WSID, r storage.RecordRange) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		rows, err := m.rows(ctx, id, r)
		if err != nil {
			yield(storage.Row{}, err)
			return
		}
		for _, row := range rows {
			if err := ctx.Err(); err != nil {
				yield(storage.Row{}, err)
				return
			}
			row.Data = slices.Clone(row.Data)
			if !yield(row, nil) {
				return
			}
		}
	}
}

func (m *Memory) rows(ctx context.Context, id messages.WSID, r storage.RecordRange) ([]storage.Row, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	ws := m.disk.workspaces[id]
	if ws == nil {
		return nil, nil
	}
	var rows []storage.Row
	for id, row := range ws.rows {
		if id.Seq == r.Seq && id.Number >= r.From && (r.To == 0 || id.Number <= r.To) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b storage.Row) int { return cmp.Compare(a.ID.Number, b.ID.Number) })
	return rows, nil
}

// yieldEvents reads under the lock and yields without it.
func yieldEvents(ctx context.Context, read func() ([]*messages.Event, error)) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		events, err := read()
		if err != nil {
			yield(messages.Event{}, err)
			return
		}
		for _, e := range events {
			if err := ctx.Err(); err != nil {
				yield(messages.Event{}, err)
				return
			}
			if !yield(cloneEvent(e), nil) {
				return
			}
		}
	}
}

// suffix returns the entries from an offset on; 0 means 1.
func suffix(log []*messages.Event, from uint64) []*messages.Event {
	first := min(max(from, 1)-1, uint64(len(log)))
	return log[first:]
}

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
