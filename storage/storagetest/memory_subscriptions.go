package storagetest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

var _ storage.Subscriptions = (*Memory)(nil)

// SubscriptionNames returns the names of all subscriptions in their order.
func (m *Memory) SubscriptionNames(ctx context.Context) ([]string, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return slices.Sorted(maps.Keys(m.disk.subscriptions)), nil
}

// Subscription returns the subscription of a name, and how much it has parked.
func (m *Memory) Subscription(ctx context.Context, name string) (storage.Subscription, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return storage.Subscription{}, err
	}
	defer unlock()
	s, err := m.disk.subscription(name)
	if err != nil {
		return storage.Subscription{}, err
	}
	standing := *s
	standing.Parked = nil
	standing = cloneSubscription(&standing)
	standing.ParkedCount = uint64(len(s.Parked))
	return standing, nil
}

// ParkedEvents returns some of what a subscription has parked.
func (m *Memory) ParkedEvents(ctx context.Context, name string, after storage.ParkedEvent, limit int) ([]storage.ParkedEvent, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := m.disk.subscription(name)
	if err != nil {
		return nil, err
	}
	from, there := find(s.Parked, &after)
	if there {
		from++
	}
	left := s.Parked[from:]
	return canonical(slices.Clone(left[:min(limit, len(left))])), nil
}

// PutSubscription makes a subscription unless it is there.
func (m *Memory) PutSubscription(ctx context.Context, s storage.Subscription) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.Validate(&m.disk.desc); err != nil {
		return err
	}
	if have, there := m.disk.subscriptions[s.Name]; there {
		if !have.Equal(&s.SubscriptionSource) {
			return fmt.Errorf("%w: %q is there, and reads something else", storage.ErrSubscription, s.Name)
		}
		return nil
	}
	if err := m.disk.checkNext(&s, s.Next); err != nil {
		return err
	}
	made := cloneSubscription(&s)
	made.Parked = nil
	made.Stopped = storage.CutSubscriptionReason(s.Stopped)
	park(&made, s.Parked)
	m.disk.subscriptions[s.Name] = &made
	return nil
}

// MoveSubscription changes where a subscription stands.
func (m *Memory) MoveSubscription(ctx context.Context, move storage.SubscriptionMove) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := m.disk.subscription(move.Name)
	if err != nil {
		return err
	}
	if err := s.ValidateMove(&m.disk.desc, &move); err != nil {
		return err
	}
	if err := m.disk.checkNext(s, move.Next); err != nil {
		return err
	}
	for p, next := range move.Next {
		s.Next[p] = next
		s.Parked = slices.DeleteFunc(s.Parked, func(e storage.ParkedEvent) bool { return e.Partition == p && e.Offset >= next })
	}
	unpark(s, move.Unpark)
	park(s, move.Park)
	if move.Stopped != nil {
		s.Stopped = storage.CutSubscriptionReason(*move.Stopped)
	}
	return nil
}

// DeleteSubscription forgets a subscription.
func (m *Memory) DeleteSubscription(ctx context.Context, name string) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := m.disk.subscription(name); err != nil {
		return err
	}
	delete(m.disk.subscriptions, name)
	return nil
}

func (d *disk) subscription(name string) (*storage.Subscription, error) {
	s, there := d.subscriptions[name]
	if !there {
		return nil, fmt.Errorf("%w: %q", storage.ErrNoSubscription, name)
	}
	return s, nil
}

// checkNext refuses positions beyond the next events of their logs.
func (d *disk) checkNext(s *storage.Subscription, next map[messages.PartitionID]uint64) error {
	for p, offset := range next {
		end := uint64(d.partitions[p].last())
		if s.Workspace != nil {
			end = 0
			if ws := d.workspaces[*s.Workspace]; ws != nil {
				end = uint64(len(ws.wlog))
			}
		}
		if offset > end+1 {
			return fmt.Errorf("%w: %q: partition %d: got position %d, the log ends at %d", storage.ErrSubscription, s.Name, p, offset, end)
		}
	}
	return nil
}

// park adds events to what is parked, or replaces them, and keeps the order.
func park(s *storage.Subscription, events []storage.ParkedEvent) {
	for _, e := range events {
		e.Reason = storage.CutSubscriptionReason(e.Reason)
		at, twice := find(s.Parked, &e)
		if twice {
			s.Parked[at] = e
			continue
		}
		s.Parked = slices.Insert(s.Parked, at, e)
	}
}

func unpark(s *storage.Subscription, events []storage.ParkedEvent) {
	for i := range events {
		if at, there := find(s.Parked, &events[i]); there {
			s.Parked = slices.Delete(s.Parked, at, at+1)
		}
	}
}

func find(parked []storage.ParkedEvent, e *storage.ParkedEvent) (int, bool) {
	return slices.BinarySearchFunc(parked, *e, func(a, b storage.ParkedEvent) int { return a.Compare(&b) })
}

// cloneSubscription returns a copy that shares nothing with the subscription.
func cloneSubscription(s *storage.Subscription) storage.Subscription {
	c := *s
	if s.Partition != nil {
		c.Partition = new(*s.Partition)
	}
	if s.Workspace != nil {
		c.Workspace = new(*s.Workspace)
	}
	c.Kinds = canonical(slices.Clone(s.Kinds))
	c.Next = make(map[messages.PartitionID]uint64, len(s.Next))
	maps.Copy(c.Next, s.Next)
	c.Parked = canonical(slices.Clone(s.Parked))
	return c
}
