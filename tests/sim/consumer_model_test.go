package sim

import (
	"bytes"
	"context"
	"errors"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// laneModel is what must be true of one log of a subscription, whoever delivers it.
type laneModel struct {
	consumer  *consumer
	partition messages.PartitionID
	current   *laneRun
	// done are the events from the stored position on that were handled.
	done map[uint64]bool
	// failed counts the calls in which an event was not handled.
	failed map[uint64]uint32
	// last is the event that was given up last: a move whose outcome is unknown says so again.
	last uint64
	// broken says that something has happened after which a batch that was handled may be
	// delivered again: its position was not stored, as far as anybody knows.
	broken bool
}

// begin checks what is handed over: the next events of the log, from the stored position
// on, none left out, none again without a reason.
func (m *laneModel) begin(r *laneRun, events []messages.LogEvent) {
	c, s := m.consumer, m.consumer.s
	now, err := s.disk.Subscription(context.Background(), c.name())
	switch {
	case err != nil:
		s.failf("%v delivers, but: %v", r.key, err)
	case m.current != r:
		s.failf("%v begins a batch after it was left behind", r.key)
	case now.Position(m.partition) > events[0].Offset && r.trying == events[0].Offset && len(events) == 1:
		return // somebody replays it
	case now.Stopped == partition.Paused:
		s.failf("%v delivers, but is paused", r.key)
	}
	m.checkBatch(r, now.Position(m.partition), events)
	m.checkRepeated(r, events)
}

func (m *laneModel) checkBatch(r *laneRun, next uint64, events []messages.LogEvent) {
	c, s := m.consumer, m.consumer.s
	size := 0
	for i := range events {
		size += len(events[i].Event.Body)
	}
	last := len(events[len(events)-1].Event.Body)
	if len(events) > c.batch || size-last >= c.bytes {
		s.failf("%v: got a batch of %d events, %d bytes, want at most %d and %d", r.key, len(events), size, c.batch, c.bytes)
	}
	left := events
	for offset, e := range m.log(next) {
		switch {
		case len(left) == 0:
			return
		case !c.wants(e.WorkspaceKind):
		case left[0].Offset != offset || left[0].Event.PLogOffset != e.PLogOffset || !bytes.Equal(left[0].Event.Body, e.Body):
			s.failf("%v: got offset %d, %q, want %d, %q: the stored position is %d", r.key, left[0].Offset, left[0].Event.Body, offset, e.Body, next)
			return
		default:
			left = left[1:]
		}
	}
	if len(left) > 0 {
		s.failf("%v: got offset %d, which the log does not have", r.key, left[0].Offset)
	}
}

// checkRepeated checks that events are handed over again only if they must be, and one
// batch of them at the most.
func (m *laneModel) checkRepeated(r *laneRun, events []messages.LogEvent) {
	s := m.consumer.s
	switch {
	case len(m.done) > m.consumer.batch:
		s.failf("%v: %d events were handled behind the stored position, want a batch, %d, at most", r.key, len(m.done), m.consumer.batch)
	case len(m.done) > 0 && !m.broken:
		s.failf("%v: offset %d is handed over, but %d events from there on were handled and nothing has failed", r.key, events[0].Offset, len(m.done))
	}
	if len(m.done) > 0 {
		s.repeated += len(m.done)
		clear(m.done)
		m.broken = false
	}
}

// ended notes what has become of a batch: so many were handled, the others were not if err
// is not nil.
func (m *laneModel) ended(r *laneRun, events []messages.LogEvent, handled int, err error) {
	s := m.consumer.s
	s.notef("%v: %d of %d events from %d on: %v", r.key, handled, len(events), events[0].Offset, err)
	if m.current != r {
		return // it was left behind, and the events were delivered again
	}
	if now, _ := s.disk.Subscription(context.Background(), m.consumer.name()); now.Position(m.partition) > events[0].Offset {
		r.tried = err
		return
	}
	for i := range events {
		if i < handled {
			m.done[events[i].Offset] = true
			s.delivered++
		} else {
			m.failed[events[i].Offset]++
		}
	}
}

// moved checks a position that a lane has stored: what lies before it was handled or is
// parked.
func (m *laneModel) moved(r *laneRun, before *storage.Subscription, move *storage.SubscriptionMove) {
	c, s := m.consumer, m.consumer.s
	from, to := before.Position(m.partition), move.Next[m.partition]
	if m.current != r || to < from || len(move.Next) != 1 {
		s.failf("%v: moved from %d to %v", r.key, from, move.Next)
	}
	parked := make(map[uint64]bool)
	for _, e := range move.Park {
		parked[e.Offset] = true
		if e.Offset != m.last || e.Offset >= from {
			m.checkGivenUp(r, e.Offset, e.Tries)
		}
		m.last = e.Offset
	}
	for offset, e := range m.log(from) {
		if offset >= to {
			break
		}
		if c.wants(e.WorkspaceKind) && m.done[offset] == parked[offset] {
			s.failf("%v: moved from %d to %d: offset %d was handled: %v, is parked: %v", r.key, from, to, offset, m.done[offset], parked[offset])
		}
		delete(m.done, offset)
		delete(m.failed, offset)
	}
	if move.Stopped != nil {
		m.checkGivenUp(r, to, c.lane.MaxTries)
	}
	if (move.Stopped != nil) != c.lane.StopOnPoison && (move.Stopped != nil || len(move.Park) > 0) {
		s.failf("%v: stopped: %v, parked: %d, want it to stop: %v", r.key, move.Stopped != nil, len(move.Park), c.lane.StopOnPoison)
	}
}

// checkGivenUp checks that an event has failed often enough.
func (m *laneModel) checkGivenUp(r *laneRun, offset uint64, tries uint32) {
	if n := m.failed[offset]; n < tries || tries < m.consumer.lane.MaxTries {
		m.consumer.s.failf("%v: offset %d is given up after %d tries, and has failed %d times, want %d tries", r.key, offset, tries, n, m.consumer.lane.MaxTries)
	}
}

// changed follows somebody who changes where the subscription stands.
func (c *consumer) changed(move *storage.SubscriptionMove) {
	for _, m := range c.models {
		if next, moves := move.Next[m.partition]; moves {
			clear(m.done)
			for offset := range m.failed {
				if offset >= next {
					delete(m.failed, offset)
				}
			}
		}
	}
}

// begunAnew follows a subscription that is new.
func (c *consumer) begunAnew() {
	for _, m := range c.models {
		clear(m.done)
		clear(m.failed)
	}
}

// behind reports whether an event is left to be delivered.
func (m *laneModel) behind() bool {
	now, err := m.consumer.s.disk.Subscription(context.Background(), m.consumer.name())
	if err != nil {
		return !errors.Is(err, storage.ErrNoSubscription)
	}
	for _, e := range m.log(now.Position(m.partition)) {
		if m.consumer.wants(e.WorkspaceKind) {
			return true
		}
	}
	return false
}
