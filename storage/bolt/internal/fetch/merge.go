package fetch

import (
	"container/heap"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
)

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
	source Source
	heads  []mergeHead
	// bound is how many events must follow at once: they were appended together with the one before.
	bound uint32
}

// mergeHead is what must be known of an event before its turn.
type mergeHead struct {
	Place
	at       messages.Timestamp
	together uint32
}

// aheadOfAll is how many events are looked up ahead of all logs together, about.
const aheadOfAll = 1 << 16

// ByTime makes one source of those that open makes of logs, in the order of the events' registration times; where these
// are equal, in commit order. Events that were appended together stay together. Damage is found when events are looked up,
// before their turn: what was found until then is the beginning of that order.
func ByTime[T any](log *logdb.Log, logs []T, open func(T) (Source, error)) (Source, error) {
	m := &merge{log: log, ahead: min(max(aheadOfAll/max(len(logs), 1), 1), maxChunk)}
	for _, id := range logs {
		source, err := open(id)
		if err != nil {
			return nil, err
		}
		lane := &mergeLane{source: source}
		if err := m.fill(lane); err != nil {
			return nil, err
		}
		if len(lane.heads) > 0 {
			m.lanes = append(m.lanes, lane)
		}
	}
	heap.Init(m)
	return m.next, nil
}

// fill looks up the next events of a log, if none is left of those before. It makes sure that they are those that the
// index says: the order rests on their times.
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
			if err := places[i].Read(log, &m.view); err != nil {
				return err
			}
			lane.heads = append(lane.heads, mergeHead{places[i], m.view.RegisteredAt, m.view.Together()})
		}
		return nil
	})
}

// next is a source.
func (m *merge) next(n int) (places []Place, err error) {
	for ; n > 0 && len(m.lanes) > 0; n-- {
		lane := m.lanes[0]
		head := lane.heads[0]
		lane.heads = lane.heads[1:]
		places = append(places, head.Place)
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
		return x.LSN < y.LSN
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
