package transfer

import (
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// moving brings subscriptions from the partitions of an old store to those of a new one, while the events go by.
type moving struct {
	from, to uint32
	of       *Subscriptions
	// old and now are how many events there were in the partitions' logs.
	old, now []uint64
	// first are, of each subscription, the first events of the new logs that were not delivered in the old ones.
	first []map[messages.PartitionID]uint64
	// parked are the events parked in the old logs, and at the new places the parked ones of the new logs.
	parked map[oldPlace][]parkedAt
}

// oldPlace is the place of an event in an old log.
type oldPlace struct {
	partition messages.PartitionID
	offset    uint64
}

// parkedAt is an event that a subscription has parked: which of which.
type parkedAt struct{ subscription, event int }

func newMoving(s *Subscriptions, h *Header, to uint32) (*moving, error) {
	d := &h.Descriptor
	switch {
	case !h.Whole():
		return nil, fmt.Errorf("%w: positions are of the logs of the whole store, and this is a part of it", ErrSubscriptions)
	case s.head.Application != d.Application || s.head.Partitions != d.Partitions:
		return nil, fmt.Errorf("%w: they are of application %q with %d partitions, got events of %q with %d",
			ErrSubscriptions, s.head.Application, s.head.Partitions, d.Application, d.Partitions)
	}
	m := &moving{
		from: d.Partitions, to: to, of: s, old: make([]uint64, d.Partitions), now: make([]uint64, to),
		first: make([]map[messages.PartitionID]uint64, len(s.all)), parked: make(map[oldPlace][]parkedAt),
	}
	for i := range s.all {
		if err := m.begin(i, d); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *moving) begin(i int, d *messages.Descriptor) error {
	s := &m.of.all[i]
	if err := s.Validate(d); err != nil {
		return fmt.Errorf("%w: %w", ErrSubscriptions, err)
	}
	if s.Partition != nil && m.from != m.to {
		return fmt.Errorf("%w: %q reads partition %d of %d, which has no counterpart among %d: delete it before the export, or import without subscriptions",
			ErrSubscriptions, s.Name, *s.Partition, m.from, m.to)
	}
	if !m.moves(s) {
		return nil
	}
	m.first[i] = make(map[messages.PartitionID]uint64)
	for n := range s.Parked {
		at := oldPlace{s.Parked[n].Partition, s.Parked[n].Offset}
		m.parked[at] = append(m.parked[at], parkedAt{i, n})
	}
	return nil
}

// moves reports whether a subscription reads logs that are made anew.
func (m *moving) moves(s *storage.Subscription) bool { return m.from != m.to && s.Workspace == nil }

// placed notes where an event was and is.
func (m *moving) placed(e *messages.Event) {
	if m.from == m.to {
		return
	}
	p := messages.PartitionOf(e.Workspace, m.from)
	m.old[p]++
	m.now[e.Partition]++
	at := oldPlace{p, m.old[p]}
	for i, first := range m.first {
		if first != nil && first[e.Partition] == 0 && at.offset >= m.of.all[i].Position(p) {
			first[e.Partition] = m.now[e.Partition]
		}
	}
	for _, of := range m.parked[at] {
		parked := &m.of.all[of.subscription].Parked[of.event]
		parked.Partition, parked.Offset = e.Partition, m.now[e.Partition]
	}
	delete(m.parked, at)
}

// all returns the subscriptions as they are once all events have gone by, of the file with the sum.
func (m *moving) all(digest string) ([]storage.Subscription, error) {
	if err := m.of.belongTo(digest); err != nil {
		return nil, err
	}
	for at, of := range m.parked {
		return nil, fmt.Errorf("%w: %q has parked event %d of partition %d, which is not there",
			ErrSubscriptions, m.of.all[of[0].subscription].Name, at.offset, at.partition)
	}
	moved := make([]storage.Subscription, len(m.of.all))
	for i := range m.of.all {
		moved[i] = m.of.all[i]
		switch s := &moved[i]; {
		case m.moves(s):
			m.move(s, m.first[i])
		case s.Workspace != nil:
			m.rename(s)
		}
	}
	return moved, nil
}

// move gives a subscription its positions in the new logs.
func (m *moving) move(s *storage.Subscription, first map[messages.PartitionID]uint64) {
	s.Next = make(map[messages.PartitionID]uint64, m.to)
	for i, n := range m.now {
		p := messages.PartitionID(i)
		if s.Next[p] = first[p]; s.Next[p] == 0 {
			s.Next[p] = n + 1
		}
	}
	var kept []storage.ParkedEvent
	for _, e := range s.Parked {
		if e.Offset < s.Next[e.Partition] {
			kept = append(kept, e)
		}
	}
	s.Parked = kept
}

// rename puts the log of a workspace under its new partition.
func (m *moving) rename(s *storage.Subscription) {
	p := messages.PartitionOf(*s.Workspace, m.to)
	next := make(map[messages.PartitionID]uint64, len(s.Next))
	for _, n := range s.Next {
		next[p] = n
	}
	s.Next = next
	parked := make([]storage.ParkedEvent, len(s.Parked))
	for i, e := range s.Parked {
		e.Partition = p
		parked[i] = e
	}
	s.Parked = parked
}
