package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// subscribed are the workspaces whose logs subscriptions read, with their last offsets.
type subscribed map[messages.WSID]messages.WLogOffset

// findSubscribed finds out which workspaces' ends must be known. What is wrong with a
// subscription is told later.
func (f *files) findSubscribed(ctx context.Context) error {
	f.subscribed = make(subscribed)
	noMatter := func(*storage.Subscription, *storage.ParkedEvent) {}
	err := f.image.Subscriptions(ctx, noMatter, func(s *storage.Subscription, damage error) error {
		if damage == nil && s.Workspace != nil {
			f.subscribed[*s.Workspace] = 0
		}
		return nil
	})
	if errors.Is(err, storage.ErrDamaged) {
		return nil
	}
	return err
}

// see notes how far a workspace's log has come.
func (s subscribed) see(e *messages.Event) {
	if last, reads := s[e.Workspace]; reads {
		s[e.Workspace] = max(last, e.WLogOffset)
	}
}

// checkSubscriptions checks where subscriptions stand, after the log was read.
func (f *files) checkSubscriptions(ctx context.Context) error {
	f.projection = false
	var wrong error
	parked := func(s *storage.Subscription, e *storage.ParkedEvent) {
		if wrong == nil {
			wrong = s.ValidateParked(&f.desc, e)
		}
	}
	err := f.image.Subscriptions(ctx, parked, func(s *storage.Subscription, damage error) error {
		wrongParked := wrong
		wrong = nil
		if damage != nil {
			return f.subscriptionDamage(damage)
		}
		return f.checkSubscription(s, wrongParked, func(p messages.PartitionID) (uint64, bool, error) {
			if s.Workspace != nil {
				return uint64(f.subscribed[*s.Workspace]), !f.partitions[p].failed, nil
			}
			return uint64(f.partitions[p].last), !f.partitions[p].failed, nil
		})
	})
	if err != nil {
		return f.subscriptionDamage(err)
	}
	return nil
}

// subscriptionDamage turns damage into a fault, and returns any other error.
func (r *run) subscriptionDamage(err error) error {
	damage, ok := errors.AsType[*storage.DamagedError](err)
	if !ok {
		return err
	}
	r.fault(CheckDamage, place{file: damage.Where}, "%v", damage.Cause)
	return nil
}

// checkSubscription checks one subscription against the application and the logs, of which
// end returns the last offset, and whether it is known. WrongParked is what was found wrong
// with the events that it has parked.
func (r *run) checkSubscription(s *storage.Subscription, wrongParked error, end func(messages.PartitionID) (uint64, bool, error)) error {
	r.report.Subscriptions++
	where := place{file: fmt.Sprintf("subscription %q", s.Name)}
	if err := cmp.Or(s.Validate(&r.desc), wrongParked); err != nil {
		r.fault(CheckSubscription, where, "%v", err)
		return nil
	}
	for p := range messages.PartitionID(r.desc.Partitions) {
		next, has := s.Next[p]
		if !has {
			continue
		}
		last, known, err := end(p)
		if err != nil {
			return err
		}
		if known && next > last+1 {
			r.fault(CheckSubscription, where, "partition %d: position is %d, the log ends at %d", p, next, last)
		}
	}
	return nil
}

// checkStored is what [Run] checks of a store that keeps subscriptions.
func (r *run) checkStored(ctx context.Context) error {
	kept, ok := r.store.(storage.Subscriptions)
	if !ok {
		return nil
	}
	names, err := kept.SubscriptionNames(ctx)
	if err != nil {
		return r.subscriptionDamage(err)
	}
	for _, name := range names {
		if err := r.checkStoredOne(ctx, kept, name); err != nil {
			return err
		}
	}
	return nil
}

// checkStoredOne checks a subscription that is listed. Nobody deletes it meanwhile: the store
// is at rest.
func (r *run) checkStoredOne(ctx context.Context, kept storage.Subscriptions, name string) error {
	s, err := kept.Subscription(ctx, name)
	var wrong error
	if err == nil {
		wrong, err = r.findWrongParked(ctx, kept, &s)
	}
	switch {
	case errors.Is(err, storage.ErrNoSubscription):
		r.fault(CheckSubscription, place{file: fmt.Sprintf("subscription %q", name)}, "it is listed, and not there")
		return nil
	case err != nil:
		return r.subscriptionDamage(err)
	}
	return r.checkSubscription(&s, wrong, func(p messages.PartitionID) (uint64, bool, error) { return r.endOf(ctx, &s, p) })
}

// findWrongParked returns what is wrong with the first event that cannot be parked.
func (r *run) findWrongParked(ctx context.Context, kept storage.Subscriptions, s *storage.Subscription) (wrong, err error) {
	var found uint64
	for e, err := range storage.AllParked(ctx, kept, s.Name, storage.ParkedEvent{}) {
		if err != nil {
			return nil, err
		}
		if wrong = s.ValidateParked(&r.desc, &e); wrong != nil {
			return wrong, nil
		}
		found++
	}
	if found != s.ParkedCount {
		return fmt.Errorf("got %d parked events, want %d", found, s.ParkedCount), nil
	}
	return nil, nil
}

// endOf returns the last offset of a log that a subscription reads. What is wrong with the
// log is told elsewhere.
func (r *run) endOf(ctx context.Context, s *storage.Subscription, p messages.PartitionID) (last uint64, known bool, err error) {
	if s.Workspace == nil {
		register, err := r.store.Register(ctx, p)
		return uint64(register.Last), err == nil, ctx.Err()
	}
	for e, err := range r.store.WLog(ctx, *s.Workspace, messages.WLogOffset(s.Position(p))-1) {
		if err != nil {
			return 0, false, ctx.Err()
		}
		last = uint64(e.WLogOffset)
	}
	return last, true, nil
}
