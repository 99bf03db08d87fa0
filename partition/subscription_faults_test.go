package partition_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// Whatever the store does for a while, each event is handled once: what was handled is
// stored at last, by the same lane.
func TestSubscriptionOverFaults(t *testing.T) {
	tests := map[string][]storagetest.Fault{
		"position cannot be loaded": {{Op: storagetest.OpSubscription, Do: storagetest.Fail(errInjected), Times: 3}},
		"position is not stored":    {{Op: storagetest.OpMoveSubscription, Do: storagetest.Fail(errInjected), Times: 3}},
		"no space":                  {{Op: storagetest.OpMoveSubscription, Do: storagetest.Full(), Times: 3}},
		"stored, nobody knows":      {{Op: storagetest.OpMoveSubscription, Do: storagetest.UnknownDone(), Times: 3}},
		"not stored, nobody knows":  {{Op: storagetest.OpMoveSubscription, Do: storagetest.UnknownNotDone(), Times: 3}},
		"cannot be read":            {{Op: storagetest.OpPLog, Do: storagetest.Fail(errInjected), Times: 3}},
		"reading breaks off":        {{Op: storagetest.OpPLog, Do: storagetest.Break(1, errInjected), Times: 3}},
		"waiting fails":             {{Op: storagetest.OpAwaitPLog, Do: storagetest.Fail(errInjected), Times: 8}},
		"loading panics":            {{Op: storagetest.OpSubscription, Do: storagetest.Panic("injected"), Times: 2}},
		"reading panics":            {{Op: storagetest.OpPLog, Do: storagetest.Panic("injected"), Times: 2}},
		"waiting panics":            {{Op: storagetest.OpAwaitPLog, Do: storagetest.Panic("injected"), Times: 2}},
		"all at once": {
			{Op: storagetest.OpSubscription, Do: storagetest.Fail(errInjected), Chance: 0.3, Seed: 1},
			{Op: storagetest.OpMoveSubscription, Do: storagetest.UnknownDone(), Chance: 0.3, Seed: 2},
			{Op: storagetest.OpPLog, Do: storagetest.Break(2, errInjected), Chance: 0.3, Seed: 3},
			{Op: storagetest.OpAwaitPLog, Do: storagetest.Panic("injected"), Chance: 0.1, Seed: 4},
		},
	}
	for name, faults := range tests {
		t.Run(name, func(t *testing.T) {
			d, faulty := newDesk(t)
			c := newConsumer()
			config := quick("faults", c)
			config.Batch = 3
			d.writeMany(10, 1)
			var planted []*storagetest.Planted
			for _, f := range faults {
				planted = append(planted, faulty.Plant(f))
			}
			s := d.subscribe(config)
			d.upTo(c, 1, 10)
			d.writeMany(10, 1)
			d.upTo(c, 1, 20)
			for i, p := range planted {
				isTrue(t, p.Injected() > 0, "fault %d has not struck", i)
			}
			faulty.Heal()
			d.reaches(s, 1, messages.LaneWaiting)
			equal(t, oneTo(20), c.got(1))
			noError(t, d.status(s).Lanes[1].Err)
		})
	}
}

// A store's panic while the position is stored restarts the lane: the batch is delivered
// again, and nothing else.
func TestSubscriptionRestartsItsLane(t *testing.T) {
	d, faulty := newDesk(t)
	c := newConsumer()
	config := quick("restarts", c)
	config.Batch = 3
	d.writeMany(7, 1)
	faulty.Plant(storagetest.Fault{Op: storagetest.OpMoveSubscription, Do: storagetest.Panic("injected"), Times: 1})
	s := d.subscribe(config)
	d.upTo(c, 1, 10)
	d.reaches(s, 1, messages.LaneWaiting)
	equal(t, append(oneTo(3), oneTo(7)...), c.got(1))
}

// stumbling is a store whose next move of a subscription waits, and panics.
type stumbling struct {
	storagetest.Subscribing
	stumbles *atomic.Bool
	entered  chan struct{}
	panics   chan struct{}
}

func (s stumbling) MoveSubscription(ctx context.Context, m storage.SubscriptionMove) error {
	if s.stumbles.CompareAndSwap(true, false) {
		s.entered <- struct{}{}
		<-s.panics
		panic("injected")
	}
	return s.Subscribing.MoveSubscription(ctx, m)
}

// Whoever holds a lane that fails meanwhile, holds the next incarnation of it.
func TestHoldOverARestart(t *testing.T) {
	h, holds := subscribingHouse(t)
	inner, err := storagetest.NewSubscribing(h.newStore(descriptor))
	h.check(err)
	store := stumbling{Subscribing: inner, stumbles: new(atomic.Bool), entered: make(chan struct{}), panics: make(chan struct{})}
	d := openDesk(h, holds, store)
	c := newConsumer()
	s := d.subscribe(quick("held", c))
	d.writeMany(3, 1)
	d.upTo(c, 1, 3)
	d.reaches(s, 1, messages.LaneWaiting)
	store.stumbles.Store(true)
	d.write(1)
	soon(h, "the move", store.entered)
	rewound := make(chan error, 1)
	go func() { rewound <- s.Rewind(d.ctx, 1, 2) }()
	soon(h, "the hold", holds)
	close(store.panics)
	noError(t, soon(h, "rewind", rewound))
	d.upTo(c, 1, 7)
	d.reaches(s, 1, messages.LaneWaiting)
	equal(t, []uint64{1, 2, 3, 4, 2, 3, 4}, c.got(1))
}

// What was read before the log cannot be read any further is delivered first.
func TestReadingBreaksOff(t *testing.T) {
	d, faulty := newDesk(t)
	d.writeMany(4, 1)
	c := newConsumer()
	config := quick("breaks", c)
	config.MinDelay, config.MaxDelay = time.Hour, time.Hour
	faulty.Plant(storagetest.Fault{Op: storagetest.OpPLog, Do: storagetest.Break(2, errInjected), Times: 1})
	d.subscribe(config)
	d.upTo(c, 1, 4)
	equal(t, [][]uint64{{1, 2}, {3, 4}}, c.called(1))
}

// What can never succeed fails the lane, and says so; resumed, it tries again.
func TestSubscriptionFails(t *testing.T) {
	d, faulty := newDesk(t)
	c := newConsumer()
	damaged := &storage.DamagedError{Partition: 1, PLogOffset: 1}
	d.write(1)
	fault := faulty.Plant(storagetest.Fault{Op: storagetest.OpPLog, Do: storagetest.Fail(damaged)})
	s := d.subscribe(quick("fails", c))
	d.reaches(s, 1, messages.LaneFailed)
	isTrue(t, errors.Is(d.status(s).Lanes[1].Err, storage.ErrDamaged), "got %v", d.status(s).Lanes[1].Err)
	noError(t, s.Resume(d.ctx))
	d.reaches(s, 1, messages.LaneFailed)
	fault.Heal()
	noError(t, s.Resume(d.ctx))
	d.upTo(c, 1, 1)
	d.reaches(s, 2, messages.LaneWaiting)
}

// A subscription that somebody has deleted in the store fails, rather than being made again.
func TestSubscriptionIsGone(t *testing.T) {
	d, _ := newDesk(t)
	c := newConsumer()
	s := d.subscribe(quick("gone", c))
	d.reaches(s, 1, messages.LaneWaiting)
	noError(t, d.store.(storage.Subscriptions).DeleteSubscription(d.ctx, "gone"))
	d.write(1)
	d.upTo(c, 1, 1)
	_, err := s.Status(d.ctx)
	wants(t, "status", err, storage.ErrNoSubscription)
	wants(t, "pause", s.Pause(d.ctx), storage.ErrNoSubscription)
}

// A store that hangs while the position is stored: the stop ends in bounded time and says
// so, and the batch is delivered again.
func TestUndeployWhileStoringHangs(t *testing.T) {
	d, faulty := newDesk(t)
	d.hurry()
	c := newConsumer()
	d.write(1)
	gate := d.newGate()
	faulty.Plant(storagetest.Fault{Op: storagetest.OpMoveSubscription, Do: storagetest.Hold(gate), Times: 1})
	d.subscribe(quick("hangs", c))
	noError(t, gate.Await(d.ctx))
	wants(t, "undeploy", d.undeploy(), partition.ErrNotClean)
	d.deployAgain()
	d.subscribe(quick("hangs", c))
	d.upTo(c, 1, 2)
	equal(t, []uint64{1, 1}, c.got(1))
}

// The effect is an append with the delivery's id: it is there once for each event, although
// events are delivered again and again.
func TestExactlyOnce(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		const events, copies = 30, messages.WSID(2)
		config := partition.SubscriptionConfig{Name: "copies", Partition: new(messages.PartitionID(1)), Batch: 4}
		config.Handler = func(ctx context.Context, delivery partition.Delivery) error {
			for _, e := range delivery.Events {
				s, err := d.app.SequencerOf(copies)
				if err == nil {
					_, err = s.Append(ctx, partition.AppendTo{Workspace: copies, Kind: shop, DedupID: e.DedupID, Wait: true},
						partition.Draft{Body: []byte(e.PLogOffset.String())})
				}
				if err != nil {
					return err
				}
			}
			return nil
		}
		d.writeMany(events, 1)
		for range 3 {
			s := d.subscribe(config)
			noError(t, s.Rewind(d.ctx, 1, 1))
			d.reaches(s, 1, messages.LaneWaiting)
			d.eventually("the end", func() bool { return d.status(s).Lag == 0 })
			d.restart()
		}
		var bodies []string
		for e, err := range d.app.Reader().WLog(d.ctx, copies, 1) {
			noError(t, err)
			bodies = append(bodies, string(e.Body))
		}
		equal(t, events, len(bodies))
		for i, body := range bodies {
			equal(t, messages.PLogOffset(i+1).String(), body)
		}
	})
}

// TestStatusBeforeTheFirstLoad: a lane that cannot ask the store yet has a status.
func TestStatusBeforeTheFirstLoad(t *testing.T) {
	d, faulty := newDesk(t)
	d.writeMany(3, 1)
	config := quick("late", newConsumer())
	config.MinDelay, config.MaxDelay = time.Hour, time.Hour
	fault := faulty.Plant(storagetest.Fault{Op: storagetest.OpSubscription, Do: storagetest.Fail(errInjected)})
	s := d.subscribe(config)
	d.eventually("failures", func() bool { return fault.Injected() >= 4 })
	fault.Heal()
	for p := range messages.PartitionID(4) {
		d.reaches(s, p, messages.LaneRetrying)
	}
	equal(t, uint64(3), d.status(s).Lag)
}
