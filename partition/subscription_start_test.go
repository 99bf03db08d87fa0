package partition_test

import (
	"context"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// What is read stays what it was, whatever the caller does with its variables.
func TestSubscriptionOwnsItsSource(t *testing.T) {
	d, _ := newDesk(t)
	ws, other := messages.WSID(1), messages.WSID(5)
	d.writeMany(3, ws)
	c := newConsumer()
	config := quick("own", c)
	source := ws
	config.Workspace = &source
	s := d.subscribe(config)
	d.upTo(c, 1, 3)
	d.reaches(s, 1, messages.LaneWaiting)
	source = other
	d.writeMany(6, other)
	d.write(ws)
	d.upTo(c, 1, 4)
	d.eventually("no lag", func() bool { return d.status(s).Lag == 0 })
	equal(t, oneTo(4), c.got(1))
}

// putting is a store whose PutSubscription waits.
type putting struct {
	storagetest.Subscribing
	put, goOn chan struct{}
}

func (p putting) PutSubscription(ctx context.Context, s storage.Subscription) error {
	err := p.Subscribing.PutSubscription(ctx, s)
	p.put <- struct{}{}
	<-p.goOn
	return err
}

// Nobody gets hold of a subscription that has no lanes yet: it would be ended, paused or
// deleted without them.
func TestSubscriptionIsBeingStarted(t *testing.T) {
	h, holds := subscribingHouse(t)
	inner, err := storagetest.NewSubscribing(h.newStore(descriptor))
	h.check(err)
	store := putting{Subscribing: inner, put: make(chan struct{}), goOn: make(chan struct{})}
	d := openDesk(h, holds, store)
	started := make(chan error, 1)
	go func() {
		_, err := d.app.Subscribe(d.ctx, quick("starts", newConsumer()))
		started <- err
	}()
	soon(h, "the put", store.put)
	equal(t, 0, len(d.app.Subscriptions()))
	close(store.goOn)
	noError(t, soon(h, "subscribe", started))
	equal(t, 1, len(d.app.Subscriptions()))
}

// The name is free only when nobody changes any more where the subscription stands.
func TestEndDuringRewind(t *testing.T) {
	d, faulty := newDesk(t)
	c := newConsumer()
	s := d.subscribe(quick("ends", c))
	d.writeMany(5, 1)
	d.upTo(c, 1, 5)
	d.reaches(s, 1, messages.LaneWaiting)
	gate := d.newGate()
	faulty.Plant(storagetest.Fault{Op: storagetest.OpMoveSubscription, Do: storagetest.Hold(gate), Times: 1})
	rewound, ended := make(chan error, 1), make(chan error, 1)
	go func() { rewound <- s.Rewind(d.ctx, 1, 1) }()
	noError(t, gate.Await(d.ctx))
	go func() { ended <- s.End(d.ctx) }()
	d.eventually("ended", func() bool { return d.status(s).Lanes[1].State == messages.LaneEnded })
	_, err := d.app.Subscribe(d.ctx, quick("ends", c))
	wants(t, "subscribe", err, partition.ErrSubscribed)
	gate.Release()
	noError(t, soon(d.house, "rewind", rewound))
	noError(t, soon(d.house, "end", ended))
	again := newConsumer()
	d.subscribe(quick("ends", again))
	d.upTo(again, 1, 5)
	equal(t, oneTo(5), again.got(1))
}

// A Delete of which nobody knows whether it was done can be tried again.
func TestDeleteAgain(t *testing.T) {
	d, faulty := newDesk(t)
	s := d.subscribe(quick("deleted", newConsumer()))
	faulty.Plant(storagetest.Fault{Op: storagetest.OpDeleteSubscription, Do: storagetest.UnknownDone(), Times: 1})
	wants(t, "delete", s.Delete(d.ctx), messages.ErrOutcomeUnknown)
	wants(t, "delete", s.Delete(d.ctx), storage.ErrNoSubscription)
	d.subscribe(quick("deleted", newConsumer()))
}

// interrupting is a store during whose deletion of a subscription somebody loses patience.
type interrupting struct {
	storagetest.Subscribing
	interrupt context.CancelFunc
}

func (s interrupting) DeleteSubscription(ctx context.Context, name string) error {
	defer s.interrupt()
	return s.Subscribing.DeleteSubscription(ctx, name)
}

// What the store has deleted is deleted, whatever becomes of the context meanwhile.
func TestDeleteInterrupted(t *testing.T) {
	h, holds := subscribingHouse(t)
	inner, err := storagetest.NewSubscribing(h.newStore(descriptor))
	h.check(err)
	ctx, cancel := context.WithCancel(t.Context())
	d := openDesk(h, holds, interrupting{Subscribing: inner, interrupt: cancel})
	s := d.subscribe(quick("deleted", newConsumer()))
	noError(t, s.Delete(ctx))
	wants(t, "the context", ctx.Err(), context.Canceled)
	wants(t, "pause", s.Pause(d.ctx), partition.ErrStopped)
	_, err = d.app.SubscriptionAdmin().Status(d.ctx, "deleted")
	wants(t, "status", err, storage.ErrNoSubscription)
}

// A partition whose log has failed hides neither the status of the others nor keeps a
// subscription that is there from being started.
func TestSubscriptionOverAFailedPartition(t *testing.T) {
	d, faulty := newDesk(t)
	c := newConsumer()
	config := quick("fails", c)
	config.From = partition.FromNow
	s := d.subscribe(config)
	faulty.Plant(storagetest.Fault{Op: storagetest.OpRegister, Do: storagetest.Fail(&storage.DamagedError{Partition: 1, PLogOffset: 1})})
	equal(t, 4, len(d.status(s).Lanes))
	noError(t, s.End(d.ctx))
	d.subscribe(config)
}
