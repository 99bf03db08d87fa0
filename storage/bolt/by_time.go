package bolt

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
)

// Part is a part of a store's events. The zero value means all of them. Of one that is named twice there is one.
type Part struct {
	// Partitions or Workspaces are those whose events are wanted, if either is not empty.
	Partitions []messages.PartitionID
	Workspaces []messages.WSID
}

func (p *Part) validate(partitions int) error {
	if len(p.Partitions) > 0 && len(p.Workspaces) > 0 {
		return fmt.Errorf("%w: got partitions and workspaces, want either", ErrPart)
	}
	for _, id := range p.Partitions {
		if err := mustHave(id, partitions); err != nil {
			return fmt.Errorf("%w: %w", ErrPart, err)
		}
	}
	return nil
}

// CountEvents returns how many events a part of the store has.
func (s *Store) CountEvents(ctx context.Context, part Part) (n uint64, err error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	if err := part.validate(len(s.partitions)); err != nil {
		return 0, err
	}
	if len(part.Workspaces) == 0 {
		for _, id := range part.partitions(len(s.partitions)) {
			p := &s.partitions[id]
			p.mu.RLock()
			n += uint64(p.last)
			p.mu.RUnlock()
		}
		return n, nil
	}
	for _, ws := range sorted(part.Workspaces) {
		last, _, failed, err := s.partitionOf(ws).wlogEnd(s.state, ws)
		if err := errors.Join(err, failed); err != nil {
			return 0, err
		}
		n += uint64(last)
	}
	return n, nil
}

func sorted[T messages.WSID | messages.PartitionID](list []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// partitions returns those whose logs are wanted.
func (p *Part) partitions(all int) []messages.PartitionID {
	if len(p.Partitions) > 0 {
		return sorted(p.Partitions)
	}
	ids := make([]messages.PartitionID, all)
	for i := range ids {
		ids[i] = messages.PartitionID(i)
	}
	return ids
}

// ByTime returns the events of a part of the store in the order of their registration times; where these are equal,
// in commit order. Events that were appended together stay together. So each workspace's events are in the order of
// its log, and the order does not depend on how many partitions there are.
//
// It takes memory for each partition, or each workspace that is named, but not for each event.
func (s *Store) ByTime(ctx context.Context, part Part) iter.Seq2[messages.Event, error] {
	return withoutLSN(s.read(ctx, func() (source, error) {
		if err := part.validate(len(s.partitions)); err != nil {
			return nil, err
		}
		m := &merge{log: s.log}
		var err error
		if len(part.Workspaces) > 0 {
			err = begin(m, sorted(part.Workspaces), func(ws messages.WSID) (source, error) { return s.wlogSource(ws, 1) })
		} else {
			err = begin(m, part.partitions(len(s.partitions)), func(id messages.PartitionID) (source, error) { return s.plogSource(id, 1) })
		}
		return m.next, err
	}))
}

// merge makes one source of those of several logs, in each of which times do not fall.
type merge struct {
	log *logdb.Log
	// lanes are a heap: the one whose next event is the first of all is on top.
	lanes []*mergeLane
	// ahead is how many events are looked up of a log at a time.
	ahead int
	view  format.EventView
}

// mergeLane is one of the logs.
type mergeLane struct {
	source source
	heads  []mergeHead
	// bound is how many events must follow at once: they were appended together with the one before.
	bound uint32
}

// mergeHead is what must be known of an event before its turn.
type mergeHead struct {
	place
	at       messages.Timestamp
	together uint32
}

// aheadOfAll is how many events are looked up ahead of all logs together, about.
const aheadOfAll = 1 << 16

func begin[T any](m *merge, ids []T, open func(T) (source, error)) error {
	m.ahead = min(max(aheadOfAll/max(len(ids), 1), 1), maxReadChunk)
	for _, id := range ids {
		source, err := open(id)
		if err != nil {
			return err
		}
		lane := &mergeLane{source: source}
		if err := m.fill(lane); err != nil {
			return err
		}
		if len(lane.heads) > 0 {
			m.lanes = append(m.lanes, lane)
		}
	}
	heap.Init(m)
	return nil
}

// fill looks up the next events of a log, if none is left of those before.
func (m *merge) fill(lane *mergeLane) error {
	if len(lane.heads) > 0 {
		return nil
	}
	places, err := lane.source(m.ahead)
	if err != nil {
		return err
	}
	lane.heads = lane.heads[:0]
	return m.log.Read(func(log *logdb.Reader) error {
		for i := range places {
			value := log.Value(places[i].lsn)
			if value == nil {
				return places[i].damaged(format.ErrMissing)
			}
			if err := m.view.Decode(places[i].lsn, value); err != nil {
				return places[i].damaged(err)
			}
			lane.heads = append(lane.heads, mergeHead{places[i], m.view.RegisteredAt, m.view.Together()})
		}
		return nil
	})
}

// next is a source.
func (m *merge) next(n int) (places []place, err error) {
	for ; n > 0 && len(m.lanes) > 0; n-- {
		lane := m.lanes[0]
		head := lane.heads[0]
		lane.heads = lane.heads[1:]
		places = append(places, head.place)
		if lane.bound > 0 {
			lane.bound--
		} else {
			lane.bound = head.together
		}
		if err := m.fill(lane); err != nil {
			return places, err
		}
		if len(lane.heads) == 0 {
			heap.Pop(m)
		} else {
			heap.Fix(m, 0)
		}
	}
	return places, nil
}

// Len implements [heap.Interface].
func (m *merge) Len() int { return len(m.lanes) }

// Less implements [heap.Interface].
func (m *merge) Less(i, j int) bool {
	a, b := m.lanes[i], m.lanes[j]
	switch x, y := &a.heads[0], &b.heads[0]; {
	case a.bound > 0 || b.bound > 0:
		return a.bound > 0
	case x.at != y.at:
		return x.at < y.at
	default:
		return x.lsn < y.lsn
	}
}

// Swap implements [heap.Interface].
func (m *merge) Swap(i, j int) { m.lanes[i], m.lanes[j] = m.lanes[j], m.lanes[i] }

// Push implements [heap.Interface]. Nothing is pushed: a log that has ended stays so.
func (m *merge) Push(any) {}

// Pop implements [heap.Interface].
func (m *merge) Pop() any {
	last := m.lanes[len(m.lanes)-1]
	m.lanes = m.lanes[:len(m.lanes)-1]
	return last
}
