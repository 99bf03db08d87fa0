package partition_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

var errPoison = errors.New("poison")

// poisonAt fails on some offsets of partition 1.
func poisonAt(offsets ...uint64) func(partition.Delivery) error {
	return func(d partition.Delivery) error {
		for _, o := range offsetsOf(d) {
			if d.Partition == 1 && slices.Contains(offsets, o) {
				return errPoison
			}
		}
		return nil
	}
}

// Paused is paused over a restart, too, until it is resumed.
func TestPauseAndResume(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		c := newConsumer()
		s := d.subscribe(quick("paused", c))
		d.write(1)
		d.upTo(c, 1, 1)
		noError(t, s.Pause(d.ctx))
		noError(t, s.Pause(d.ctx))
		d.write(1, 2)
		d.reaches(s, 1, messages.LaneHalted)
		d.restart()
		s = d.subscribe(quick("paused", c))
		d.reaches(s, 1, messages.LaneHalted)
		status := d.status(s)
		equal(t, partition.Paused, status.Stopped)
		equal(t, uint64(2), status.Lag)
		noError(t, s.Rewind(d.ctx, 1, 1))
		d.reaches(s, 1, messages.LaneHalted)
		equal(t, 1, len(c.got(1)))
		noError(t, s.Resume(d.ctx))
		d.upTo(c, 1, 3)
		d.upTo(c, 2, 1)
		equal(t, []uint64{1, 1, 2}, c.got(1))
		equal(t, "", d.status(s).Stopped)
	})
}

// Nothing is delivered once Pause has returned, and the batch under way is stored by then.
func TestPauseWaitsForTheHandler(t *testing.T) {
	d, _ := newDesk(t)
	c := newConsumer()
	entered, end := make(chan struct{}), make(chan struct{})
	config := quick("busy", c)
	config.Handler = func(ctx context.Context, delivery partition.Delivery) error {
		entered <- struct{}{}
		<-end
		return c.handle(ctx, delivery)
	}
	s := d.subscribe(config)
	d.write(1)
	soon(d.house, "the handler", entered)
	short, cancel := context.WithCancel(d.ctx)
	paused := make(chan error, 1)
	go func() { paused <- s.Pause(short) }()
	soon(d.house, "the hold", d.holds)
	cancel()
	wants(t, "pause", soon(d.house, "pause", paused), context.Canceled)
	equal(t, "", d.status(s).Stopped)
	go func() { paused <- s.Pause(d.ctx) }()
	close(end)
	noError(t, soon(d.house, "pause", paused))
	equal(t, uint64(2), d.status(s).Lanes[1].Next)
	equal(t, []uint64{1}, c.got(1))
	d.write(1)
	d.reaches(s, 1, messages.LaneHalted)
	noError(t, s.Resume(d.ctx))
	soon(d.house, "the handler", entered)
	d.upTo(c, 1, 2)
	equal(t, oneTo(2), c.got(1))
}

func TestRewindAndSkip(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		c := newConsumer()
		s := d.subscribe(quick("moved", c))
		d.writeMany(5, 1)
		d.upTo(c, 1, 5)
		noError(t, s.Rewind(d.ctx, 1, 4))
		d.upTo(c, 1, 7)
		equal(t, []uint64{1, 2, 3, 4, 5, 4, 5}, c.got(1))
		noError(t, s.Pause(d.ctx))
		d.writeMany(3, 1)
		noError(t, s.SkipToEnd(d.ctx))
		noError(t, s.Resume(d.ctx))
		d.writeMany(1, 1)
		d.upTo(c, 1, 8)
		equal(t, uint64(9), c.got(1)[7])
		wants(t, "beyond the end", s.Rewind(d.ctx, 1, 11), storage.ErrSubscription)
		wants(t, "no such partition", s.Rewind(d.ctx, 4, 1), storage.ErrSubscription)
		noError(t, s.Rewind(d.ctx, 1, 10))
		d.reaches(s, 1, messages.LaneWaiting)
		equal(t, 8, len(c.got(1)))
	})
}

// What was deleted begins anew.
func TestDelete(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		c := newConsumer()
		s := d.subscribe(quick("deleted", c))
		d.writeMany(2, 1)
		d.upTo(c, 1, 2)
		noError(t, s.Delete(d.ctx))
		wants(t, "pause", s.Pause(d.ctx), partition.ErrStopped)
		_, err := s.Status(d.ctx)
		wants(t, "status", err, storage.ErrNoSubscription)
		equal(t, 0, len(d.app.Subscriptions()))
		s = d.subscribe(quick("deleted", c))
		d.upTo(c, 1, 4)
		equal(t, []uint64{1, 2, 1, 2}, c.got(1))
		noError(t, s.End(d.ctx))
		s = d.subscribe(quick("deleted", c))
		d.reaches(s, 1, messages.LaneWaiting)
		equal(t, 4, len(c.got(1)))
	})
}

// Poison is found, parked with its reason, listed, replayed, dropped; the rest goes on.
func TestParked(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		c := newConsumer()
		c.failWith(poisonAt(2, 4))
		d.writeMany(6, 1)
		s := d.subscribe(quick("parks", c))
		d.upTo(c, 1, 4)
		d.reaches(s, 1, messages.LaneWaiting)
		equal(t, []uint64{1, 3, 5, 6}, c.got(1))
		parked := d.parked(s)
		equal(t, 2, len(parked))
		equal(t, uint64(2), parked[0].Offset)
		equal(t, errPoison.Error(), parked[0].Reason)
		// Twice with the others, twice alone.
		equal(t, uint32(4), parked[0].Tries)
		equal(t, 2, d.status(s).Parked)

		d.restart()
		s = d.subscribe(quick("parks", c))
		failed := s.Replay(d.ctx, parked[0])
		wants(t, "replay", failed, errPoison)
		wants(t, "replay", failed, partition.ErrNotHandled)
		again := d.parked(s)[0]
		isTrue(t, again.Tries == 5 && again.At >= parked[0].At, "got %+v", again)
		c.failWith(nil)
		noError(t, s.Replay(d.ctx, parked[0]))
		wants(t, "replay", s.Replay(d.ctx, parked[0]), partition.ErrNotParked)
		noError(t, s.Drop(d.ctx, parked[1]))
		wants(t, "drop", s.Drop(d.ctx, parked[1]), partition.ErrNotParked)
		equal(t, 0, len(d.parked(s)))
		equal(t, []uint64{1, 3, 5, 6, 2}, c.got(1))
		d.write(1)
		d.upTo(c, 1, 6)
	})
}

// Rewound before what is parked, it is delivered again and parked no more.
func TestRewindUnparks(t *testing.T) {
	d, _ := newDesk(t)
	c := newConsumer()
	c.failWith(poisonAt(2))
	d.writeMany(3, 1)
	s := d.subscribe(quick("parks", c))
	d.upTo(c, 1, 2)
	d.eventually("the parking", func() bool { return len(d.parked(s)) == 1 })
	c.failWith(nil)
	noError(t, s.Rewind(d.ctx, 1, 2))
	d.upTo(c, 1, 4)
	equal(t, []uint64{1, 3, 2, 3}, c.got(1))
	equal(t, 0, len(d.parked(s)))
}

// A handler that names the event spares the others: those before it are not repeated.
func TestBatchError(t *testing.T) {
	d, _ := newDesk(t)
	c := newConsumer()
	config := quick("named", c)
	config.Handler = func(ctx context.Context, delivery partition.Delivery) error {
		if i := slices.Index(offsetsOf(delivery), 3); i >= 0 && delivery.Partition == 1 {
			done := delivery
			done.Events = delivery.Events[:i]
			if i > 0 {
				noError(t, c.handle(ctx, done))
			}
			return &partition.BatchError{Index: i, Err: errPoison}
		}
		return c.handle(ctx, delivery)
	}
	d.writeMany(5, 1)
	s := d.subscribe(config)
	d.upTo(c, 1, 4)
	d.reaches(s, 1, messages.LaneWaiting)
	equal(t, []uint64{1, 2, 4, 5}, c.got(1))
	parked := d.parked(s)
	equal(t, 1, len(parked))
	isTrue(t, parked[0].Offset == 3 && parked[0].Tries == 2 && strings.Contains(parked[0].Reason, "poison"), "got %+v", parked)
}

// Poison stops all lanes, also over a restart; resumed, it is tried again.
func TestPoisonStops(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		c := newConsumer()
		c.failWith(poisonAt(2))
		config := quick("stops", c)
		config.OnPoison = partition.Stop
		d.writeMany(3, 1)
		s := d.subscribe(config)
		for p := range messages.PartitionID(4) {
			d.reaches(s, p, messages.LaneHalted)
		}
		status := d.status(s)
		isTrue(t, strings.Contains(status.Stopped, "partition 1, offset 2") && strings.Contains(status.Stopped, "poison"), "got %+v", status)
		equal(t, uint64(2), status.Lag)
		d.write(2)
		noError(t, s.Pause(d.ctx))
		equal(t, status.Stopped, d.status(s).Stopped)
		d.restart()
		s = d.subscribe(config)
		d.reaches(s, 2, messages.LaneHalted)
		c.failWith(nil)
		equal(t, 0, len(c.got(2)))
		noError(t, s.Resume(d.ctx))
		d.upTo(c, 1, 3)
		d.upTo(c, 2, 1)
		equal(t, oneTo(3), c.got(1))
	})
}
