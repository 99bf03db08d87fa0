package partition_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// stands returns the status of a subscription by its name.
func (d *desk) stands(name string) partition.SubscriptionStatus {
	d.t.Helper()
	status, err := d.app.SubscriptionAdmin().Status(d.ctx, name)
	d.check(err)
	return status
}

// What is changed by name is changed in the subscription that runs.
func TestAdminOfARunningSubscription(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		c := newConsumer()
		c.failWith(poisonAt(2, 3))
		d.writeMany(4, 1)
		s := d.subscribe(quick("runs", c))
		d.upTo(c, 1, 2)
		d.reaches(s, 1, messages.LaneWaiting)
		admin := d.app.SubscriptionAdmin()
		status := d.stands("runs")
		equal(t, partition.SubscriptionRunning, status.State)
		equal(t, 2, status.Parked)
		equal(t, uint64(2), status.Delivered)

		parked := d.parked(s)
		wants(t, "replay", admin.Replay(d.ctx, "runs", parked[0]), partition.ErrNotHandled)
		c.failWith(nil)
		noError(t, admin.Replay(d.ctx, "runs", parked[0]))
		for _, offset := range []uint64{0, 1, 2} {
			at := partition.ParkedEvent{Partition: 1, Offset: offset}
			wants(t, "drop before what is parked", admin.Drop(d.ctx, "runs", at), partition.ErrNotParked)
		}
		noError(t, admin.Drop(d.ctx, "runs", parked[1]))
		wants(t, "drop", admin.Drop(d.ctx, "runs", parked[1]), partition.ErrNotParked)
		noError(t, admin.Rewind(d.ctx, "runs", 1, 4))
		d.upTo(c, 1, 4)
		equal(t, []uint64{1, 4, 2, 4}, c.got(1))

		noError(t, admin.Pause(d.ctx, "runs"))
		equal(t, partition.SubscriptionPaused, d.stands("runs").State)
		d.writeMany(2, 1)
		equal(t, uint64(2), d.stands("runs").Lag)
		noError(t, admin.SkipToEnd(d.ctx, "runs"))
		noError(t, admin.Resume(d.ctx, "runs"))
		d.write(1)
		d.upTo(c, 1, 5)
		equal(t, uint64(7), c.got(1)[4])
		noError(t, admin.Delete(d.ctx, "runs"))
		equal(t, 0, len(d.app.Subscriptions()))
		_, err := admin.Status(d.ctx, "runs")
		wants(t, "status", err, storage.ErrNoSubscription)
	})
}

// One that does not run is found by the next Subscribe as it was left.
func TestAdminOfASubscriptionThatDoesNotRun(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		c := newConsumer()
		c.failWith(poisonAt(1))
		d.writeMany(3, 1)
		s := d.subscribe(quick("rests", c))
		d.upTo(c, 1, 2)
		d.reaches(s, 1, messages.LaneWaiting)
		noError(t, s.End(d.ctx))
		d.write(1)
		admin := d.app.SubscriptionAdmin()
		status := d.stands("rests")
		equal(t, partition.SubscriptionNotRunning, status.State)
		isTrue(t, status.Lag == 1 && status.Behind > 0 && status.Parked == 1, "got %+v", status)
		equal(t, uint64(4), status.Lanes[1].Next)
		equal(t, messages.LaneEnded, status.Lanes[1].State)
		equal(t, uint64(0), status.Delivered)

		at := partition.ParkedEvent{Partition: 1, Offset: 1}
		wants(t, "replay", admin.Replay(d.ctx, "rests", at), partition.ErrNotRunning)
		noError(t, admin.Drop(d.ctx, "rests", at))
		wants(t, "replay", admin.Replay(d.ctx, "rests", at), partition.ErrNotParked)
		wants(t, "beyond the end", admin.Rewind(d.ctx, "rests", 1, 6), storage.ErrSubscription)
		wants(t, "no such partition", admin.Rewind(d.ctx, "rests", 9, 1), storage.ErrSubscription)
		noError(t, admin.Rewind(d.ctx, "rests", 1, 3))
		noError(t, admin.Pause(d.ctx, "rests"))
		equal(t, partition.SubscriptionPaused, d.stands("rests").State)
		s = d.subscribe(quick("rests", c))
		d.reaches(s, 1, messages.LaneHalted)
		noError(t, admin.Resume(d.ctx, "rests"))
		d.upTo(c, 1, 4)
		equal(t, []uint64{2, 3, 3, 4}, c.got(1))
		noError(t, s.End(d.ctx))

		d.write(1)
		noError(t, admin.SkipToEnd(d.ctx, "rests"))
		equal(t, uint64(0), d.stands("rests").Lag)
		noError(t, admin.Delete(d.ctx, "rests"))
		wants(t, "delete", admin.Delete(d.ctx, "rests"), storage.ErrNoSubscription)
		wants(t, "pause", admin.Pause(d.ctx, "rests"), storage.ErrNoSubscription)
		c.failWith(nil)
		d.subscribe(quick("rests", c))
		d.upTo(c, 1, 9)
	})
}

// briefly returns a context that ends soon.
func (d *desk) briefly() context.Context {
	ctx, cancel := context.WithTimeout(d.ctx, 100*time.Millisecond)
	d.t.Cleanup(cancel)
	return ctx
}

// While one that does not run is changed it is not started, and the application is not
// undeployed: the lanes would not know of the change, and store what they know over it.
func TestStartWaitsForAChange(t *testing.T) {
	d, faulty := newDesk(t)
	c := newConsumer()
	d.writeMany(3, 1)
	s := d.subscribe(quick("rests", c))
	d.upTo(c, 1, 3)
	d.reaches(s, 1, messages.LaneWaiting)
	noError(t, s.End(d.ctx))
	gate := storagetest.NewGate()
	faulty.Plant(storagetest.Fault{Op: storagetest.OpMoveSubscription, Do: storagetest.Hold(gate), Times: 1})
	admin, moved := d.app.SubscriptionAdmin(), make(chan error, 1)
	go func() { moved <- admin.Rewind(d.ctx, "rests", 1, 2) }()
	noError(t, gate.Await(d.ctx))
	_, err := d.app.Subscribe(d.briefly(), quick("rests", c))
	wants(t, "subscribe", err, context.DeadlineExceeded)
	wants(t, "another change", admin.Pause(d.briefly(), "rests"), context.DeadlineExceeded)
	wants(t, "undeploy", d.parts.Undeploy(d.briefly(), descriptor.Application), context.DeadlineExceeded)
	gate.Release()
	noError(t, soon(d.house, "the change", moved))
	d.restart()
	d.subscribe(quick("rests", c))
	d.upTo(c, 1, 5)
	equal(t, []uint64{1, 2, 3, 2, 3}, c.got(1))
	wants(t, "change after the end", admin.Pause(d.ctx, "rests"), partition.ErrStopped)
}

// The list has the subscriptions behind a name in their order; one that is damaged does not
// hide the others.
func TestListOfSubscriptions(t *testing.T) {
	d, faulty := newDesk(t)
	for _, name := range []string{"c", "a", "b"} {
		d.subscribe(quick(name, newConsumer()))
	}
	admin := d.app.SubscriptionAdmin()
	list := func(after string) (all []partition.SubscriptionStatus) {
		for status, err := range admin.List(d.ctx, after) {
			noError(t, err)
			all = append(all, status)
		}
		return all
	}
	names := func(all []partition.SubscriptionStatus) (names string) {
		for _, status := range all {
			names += status.Name
		}
		return names
	}
	equal(t, "abc", names(list("")))
	equal(t, "c", names(list("b")))
	damage := &storage.DamagedError{Where: "here", Cause: errInjected}
	d.eventually("lanes that wait", func() bool {
		for _, status := range list("") {
			for _, lane := range status.Lanes {
				if lane.State != messages.LaneWaiting {
					return false
				}
			}
		}
		return true
	})
	faulty.Plant(storagetest.Fault{Op: storagetest.OpSubscription, Do: storagetest.Fail(damage), Times: 1})
	all := list("")
	equal(t, "abc", names(all))
	isTrue(t, all[0].State == partition.SubscriptionFailed && errors.Is(all[0].Err, storage.ErrDamaged), "got %+v", all[0])
	equal(t, partition.SubscriptionRunning, all[1].State)
	faulty.Plant(storagetest.Fault{Op: storagetest.OpSubscription, Do: storagetest.Fail(errInjected), Times: 1})
	wants(t, "list", firstError(admin.List(d.ctx, "")), errInjected)
}

// firstError returns the error that a sequence ends with, nil if it has none.
func firstError[T any](all iter.Seq2[T, error]) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// What a lane cannot read is shown, with the lane or as the lane's.
func TestStatusOfADamagedLog(t *testing.T) {
	d, faulty := newDesk(t)
	s := d.subscribe(quick("rests", newConsumer()))
	noError(t, s.End(d.ctx))
	d.write(1)
	faulty.Plant(storagetest.Fault{Op: storagetest.OpPLog, Do: storagetest.Fail(&storage.DamagedError{Where: "here", Cause: errInjected}), Times: 1})
	status := d.stands("rests")
	isTrue(t, errors.Is(status.Err, storage.ErrDamaged) && errors.Is(status.Lanes[1].Err, storage.ErrDamaged), "got %+v", status)
	equal(t, uint64(1), status.Lag)
}

func TestAdminOfAStoreWithoutSubscriptions(t *testing.T) {
	h, _ := subscribingHouse(t)
	admin := partition.NewSubscriptionAdmin(h.newStore(descriptor))
	_, err := admin.Status(h.ctx, "x")
	wants(t, "status", err, partition.ErrKeepsNone)
	wants(t, "delete", admin.Delete(h.ctx, "x"), partition.ErrKeepsNone)
	wants(t, "list", firstError(admin.List(h.ctx, "")), partition.ErrKeepsNone)
	wants(t, "parked", firstError(admin.Parked(h.ctx, "x", partition.ParkedEvent{})), partition.ErrKeepsNone)
}
