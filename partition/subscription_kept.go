package partition

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// kept is a subscription as its store has it. What changes it is safe as long as no lane of
// its delivers: see [Subscription] and [SubscriptionAdmin].
type kept struct {
	name   string
	store  storage.Subscriptions
	reader *Reader
	now    func() time.Time
}

func (k *kept) load(ctx context.Context) (storage.Subscription, error) {
	return k.store.Subscription(ctx, k.name)
}

func (k *kept) move(ctx context.Context, m storage.SubscriptionMove) error {
	m.Name = k.name
	return k.store.MoveSubscription(ctx, m)
}

// Pause keeps the reason of one that has stopped.
func (k *kept) Pause(ctx context.Context) error {
	now, err := k.load(ctx)
	if err != nil || now.Stopped != "" {
		return err
	}
	return k.move(ctx, storage.SubscriptionMove{Stopped: new(Paused)})
}

// Resume forgets why it has stopped.
func (k *kept) Resume(ctx context.Context) error {
	return k.move(ctx, storage.SubscriptionMove{Stopped: new(string)})
}

// Rewind sets the next offset of a log.
func (k *kept) Rewind(ctx context.Context, p messages.PartitionID, offset uint64) error {
	return k.move(ctx, storage.SubscriptionMove{Next: map[messages.PartitionID]uint64{p: max(offset, 1)}})
}

// SkipToEnd goes behind the last event of each log.
func (k *kept) SkipToEnd(ctx context.Context) error {
	now, err := k.load(ctx)
	if err != nil {
		return err
	}
	next, err := k.ends(ctx, &now.SubscriptionSource)
	if err != nil {
		return err
	}
	return k.move(ctx, storage.SubscriptionMove{Next: next})
}

// Drop forgets a parked event.
func (k *kept) Drop(ctx context.Context, e ParkedEvent) error {
	parked, err := k.parked(ctx, e)
	if err != nil {
		return err
	}
	return k.move(ctx, storage.SubscriptionMove{Unpark: []ParkedEvent{parked}})
}

// Replay cannot be: the handler is needed for it.
func (k *kept) Replay(ctx context.Context, e ParkedEvent) error {
	if _, err := k.parked(ctx, e); err != nil {
		return err
	}
	return fmt.Errorf("%w: %q", ErrNotRunning, k.name)
}

// Delete forgets the subscription, also one that is damaged.
func (k *kept) Delete(ctx context.Context) error { return k.store.DeleteSubscription(ctx, k.name) }

// allParked gives what is parked behind a place.
func (k *kept) allParked(ctx context.Context, after ParkedEvent) iter.Seq2[ParkedEvent, error] {
	return storage.AllParked(ctx, k.store, k.name, after)
}

// parked returns the parked event of a partition and offset.
func (k *kept) parked(ctx context.Context, e ParkedEvent) (ParkedEvent, error) {
	before := ParkedEvent{Partition: e.Partition, Offset: max(e.Offset, 1) - 1}
	found, err := k.store.ParkedEvents(ctx, k.name, before, 1)
	if err != nil {
		return e, err
	}
	if len(found) == 0 || found[0].Compare(&e) != 0 {
		return e, fmt.Errorf("%w: %q: partition %d, offset %d", ErrNotParked, k.name, e.Partition, e.Offset)
	}
	return found[0], nil
}

// partitions returns those under which a source has a log here.
func (k *kept) partitions(source *SubscriptionSource) []messages.PartitionID {
	descriptor := k.reader.Descriptor()
	var all []messages.PartitionID
	for _, p := range ownedBy(k.reader.store, descriptor.Partitions) {
		if source.Reads(&descriptor, p) {
			all = append(all, p)
		}
	}
	return all
}

// ends returns the positions behind the last event of each log.
func (k *kept) ends(ctx context.Context, source *SubscriptionSource) (map[messages.PartitionID]uint64, error) {
	next := make(map[messages.PartitionID]uint64)
	for _, p := range k.partitions(source) {
		end, err := k.end(ctx, source, p)
		if err != nil {
			return nil, err
		}
		next[p] = end + 1
	}
	return next, nil
}

// end returns the offset of the last event of a log.
func (k *kept) end(ctx context.Context, source *SubscriptionSource, p messages.PartitionID) (uint64, error) {
	if ws := source.Workspace; ws != nil {
		numbers, err := k.reader.Numbers(ctx, *ws)
		if err != nil {
			return 0, err
		}
		for _, n := range numbers.Numbers {
			if n.Seq == messages.SeqWLogOffset {
				return uint64(n.Number), nil
			}
		}
		return 0, nil
	}
	end, err := k.reader.End(ctx, p)
	return uint64(end), err
}

// event reads an event of a log.
func (k *kept) event(ctx context.Context, source *SubscriptionSource, p messages.PartitionID, offset uint64) (messages.LogEvent, error) {
	var event messages.Event
	var err error
	if ws := source.Workspace; ws != nil {
		event, err = k.reader.WorkspaceEvent(ctx, *ws, messages.WLogOffset(offset))
	} else {
		event, err = k.reader.PartitionEvent(ctx, p, messages.PLogOffset(offset))
	}
	return messages.LogEvent{Offset: offset, Event: event}, err
}

// Status says where it stands while nobody delivers it.
func (k *kept) Status(ctx context.Context) (SubscriptionStatus, error) {
	now, err := k.load(ctx)
	if err != nil {
		return k.unknown(&now), err
	}
	var lanes []LaneStatus
	for _, p := range k.partitions(&now.SubscriptionSource) {
		lanes = append(lanes, LaneStatus{Partition: p, LaneStatus: messages.LaneStatus{State: messages.LaneEnded}})
	}
	return k.status(ctx, &now, lanes)
}

// unknown is the status of a subscription of which it is not known where it stands.
func (k *kept) unknown(now *storage.Subscription) SubscriptionStatus {
	return SubscriptionStatus{
		Name: k.name, Source: now.SubscriptionSource, State: SubscriptionFailed, Stopped: now.Stopped, Parked: int(now.ParkedCount),
	}
}

// status completes what the lanes say by what is stored and by where the logs end.
func (k *kept) status(ctx context.Context, now *storage.Subscription, lanes []LaneStatus) (SubscriptionStatus, error) {
	all := SubscriptionStatus{Name: k.name, Source: now.SubscriptionSource, Stopped: now.Stopped, Parked: int(now.ParkedCount), Lanes: lanes}
	for i := range lanes {
		one := &lanes[i]
		if err := k.measure(ctx, now, one); err != nil {
			return SubscriptionStatus{}, err
		}
		all.Lag += one.Lag
		all.Behind = max(all.Behind, one.Behind)
		all.Delivered += one.Delivered
		if all.Err == nil {
			all.Err = one.Err
		}
	}
	all.State = stateOf(now.Stopped, lanes)
	return all, nil
}

// measure finds out how far a lane is behind the end of its log. What cannot be read there
// is the lane's error.
func (k *kept) measure(ctx context.Context, now *storage.Subscription, one *LaneStatus) error {
	if one.Next == 0 || !delivers(one.State) {
		// It has not asked yet, or what it knows may be out of date.
		one.Next = now.Position(one.Partition)
	}
	end, err := k.end(ctx, &now.SubscriptionSource, one.Partition)
	switch {
	case errors.Is(err, storage.ErrDamaged), errors.Is(err, storage.ErrConflict):
		one.fail(err)
		return nil
	case err != nil || end < one.Next:
		return err
	}
	one.Lag = end - one.Next + 1
	oldest, err := k.event(ctx, &now.SubscriptionSource, one.Partition, one.Next)
	switch {
	case errors.Is(err, storage.ErrDamaged):
		one.fail(err)
		return nil
	case err != nil:
		return err
	}
	one.Behind = max(0, k.now().Sub(oldest.Event.RegisteredAt.Time()))
	return nil
}

// fail notes why a log cannot be read, unless the lane has an error of its own.
func (s *LaneStatus) fail(err error) {
	if s.Err == nil {
		s.Err = err
	}
}
