package bolt

import (
	"context"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
	"github.com/partita-go/partita/storage/internal/watch"
)

// AwaitPLog implements [storage.Watcher].
func (s *Store) AwaitPLog(ctx context.Context, id messages.PartitionID, offset messages.PLogOffset) error {
	p, err := s.partition(id)
	if err != nil {
		return err
	}
	offset = max(offset, 1)
	return s.await(ctx, watch.Topic{Log: watch.Partition, ID: uint64(id)}, func() (bool, error) {
		p.mu.RLock()
		defer p.mu.RUnlock()
		if p.last >= offset {
			return true, nil
		}
		return false, p.failed
	})
}

// AwaitWLog implements [storage.Watcher].
func (s *Store) AwaitWLog(ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error {
	offset = max(offset, 1)
	return s.await(ctx, watch.Topic{Log: watch.Workspace, ID: uint64(ws)}, func() (bool, error) {
		there, known, failed := s.partitionOf(ws).hasWLog(ws, offset)
		if there || known && failed == nil {
			return there, nil
		}
		last, err := statedb.WLogEnd(s.state, ws)
		if last >= offset || err != nil {
			return err == nil, err
		}
		return false, failed
	})
}

// AwaitAny implements [storage.Watcher].
func (s *Store) AwaitAny(ctx context.Context, seen uint64) (last uint64, err error) {
	err = s.await(ctx, watch.Topic{Log: watch.Any}, func() (bool, error) {
		last = s.lastLSN.Load()
		return last > seen, nil
	})
	return last, err
}

func (s *Store) await(ctx context.Context, t watch.Topic, there func() (bool, error)) error {
	return s.board.Await(ctx, t, func() (bool, error) {
		if err := s.enter(ctx); err != nil {
			return false, err
		}
		if done, err := there(); done || err != nil {
			return done, err
		}
		return false, s.brokenBy()
	})
}

// hasWLog reports whether a workspace's log has come to an offset, as far as that is
// known without looking into state.db.
func (p *partition) hasWLog(ws messages.WSID, offset messages.WLogOffset) (there, known bool, failed error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if _, e := p.tail.LastOf(ws); e != nil {
		return e.WLog >= offset, true, p.failed
	}
	return false, false, p.failed
}
