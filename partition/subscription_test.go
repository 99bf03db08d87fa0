package partition_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// Each event once and in order, those from before and those to come, over restarts.
func TestSubscriptionDelivers(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		c := newConsumer()
		config := quick("all", c)
		config.Batch = 3
		d.writeMany(5, 1)
		d.writeMany(2, 2)
		d.subscribe(config)
		d.upTo(c, 1, 5)
		d.writeMany(4, 1)
		d.upTo(c, 1, 9)
		d.upTo(c, 2, 2)
		d.restart()
		d.writeMany(2, 1)
		s := d.subscribe(config)
		d.upTo(c, 1, 11)
		d.reaches(s, 1, messages.LaneWaiting)
		equal(t, oneTo(11), c.got(1))
		equal(t, oneTo(2), c.got(2))
		equal(t, 0, len(c.got(0)))
		for _, call := range c.called(1) {
			isTrue(t, len(call) <= 3, "got a batch of %d", len(call))
		}
		status := d.status(s)
		equal(t, uint64(0), status.Lag)
		equal(t, uint64(2), status.Delivered)
		equal(t, 4, len(status.Lanes))
	})
}

// A partition and a workspace are logs of their own, and a bound on bytes bounds a batch.
func TestSubscriptionSources(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		d.write(1, 5, 2, 1, 5, 5)
		ofPartition, ofWorkspace := newConsumer(), newConsumer()
		one := quick("partition", ofPartition)
		one.Partition, one.Bytes = new(messages.PartitionID(1)), 1
		d.subscribe(one)
		two := quick("workspace", ofWorkspace)
		two.Workspace = new(messages.WSID(5))
		s := d.subscribe(two)
		d.upTo(ofPartition, 1, 5)
		d.upTo(ofWorkspace, 1, 3)
		equal(t, oneTo(5), ofPartition.got(1))
		equal(t, oneTo(3), ofWorkspace.got(1))
		for _, call := range ofPartition.called(1) {
			equal(t, 1, len(call))
		}
		d.write(1, 5)
		d.upTo(ofWorkspace, 1, 4)
		d.reaches(s, 1, messages.LaneWaiting)
		equal(t, uint64(5), d.status(s).Lanes[0].Next)
		noError(t, s.Rewind(d.ctx, 1, 4))
		d.upTo(ofWorkspace, 1, 5)
		noError(t, s.SkipToEnd(d.ctx))
	})
}

// From now on: only what comes. A subscription that is there stays where it is.
func TestSubscriptionFromNow(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		d.write(1, 1, 5)
		c := newConsumer()
		config := quick("later", c)
		config.From = partition.FromNow
		config.Workspace = new(messages.WSID(1))
		d.subscribe(config)
		d.restart()
		d.write(1)
		d.subscribe(config)
		d.upTo(c, 1, 1)
		equal(t, []uint64{3}, c.got(1))
	})
}

// twoKinds has shops, and stores that nobody wants to hear about.
func twoKinds() messages.Descriptor {
	d := descriptor
	d.Application = "two kinds"
	d.Kinds = append(slices.Clone(d.Kinds), messages.Kind{ID: 2, Name: "store"})
	return d
}

// Events of other kinds are passed over, and do not count as lag.
func TestSubscriptionKinds(t *testing.T) {
	h := newHouse(t, partition.Options{})
	store, err := storagetest.NewSubscribing(h.newStore(twoKinds()))
	h.check(err)
	d := &desk{house: h, store: store, app: h.deploy(partition.Application{Descriptor: twoKinds()}, store)}
	c := newConsumer()
	config := quick("shops", c)
	config.Kinds = []messages.WSKind{2}
	s := d.subscribe(config)
	d.write(1, 1)
	sequencer, err := d.app.SequencerOf(9)
	h.check(err)
	_, err = sequencer.Append(d.ctx, partition.AppendTo{Workspace: 9, Kind: 2}, partition.Draft{})
	h.check(err)
	d.write(1)
	d.upTo(c, 1, 1)
	d.eventually("no lag", func() bool { return d.status(s).Lag == 0 })
	equal(t, []uint64{3}, c.got(1))

	// Nor when nobody looks at them any more.
	d.write(1, 1, 2)
	d.eventually("no lag", func() bool { return d.status(s).Lag == 0 })
	noError(t, s.Pause(d.ctx))
	equal(t, uint64(0), d.status(s).Lag)
	noError(t, s.Resume(d.ctx))
	d.write(1, 1, 2)
	d.eventually("no lag", func() bool { return d.status(s).Lag == 0 })
	noError(t, s.End(d.ctx))
	status, err := d.app.SubscriptionAdmin().Status(d.ctx, "shops")
	h.check(err)
	equal(t, partition.SubscriptionNotRunning, status.State)
	equal(t, uint64(0), status.Lag)
}

// A deduplication id names application, subscription and event, and nothing else.
func TestDeliveryID(t *testing.T) {
	seen := make(map[partition.DedupID]string)
	for _, name := range []string{"a", "b", "a\x00", ""} {
		for n := range 243 {
			e := messages.Event{
				Partition: messages.PartitionID(n % 3), PLogOffset: messages.PLogOffset(n / 3 % 3), Epoch: messages.Epoch(n / 9 % 3),
				RegisteredAt: messages.Timestamp(n / 27 % 3),
			}
			app := []string{"x", "xa", "y"}[n/81]
			id := partition.DeliveryID(app, name, &e)
			what := fmt.Sprintf("%q %q %d", app, name, n)
			isTrue(t, seen[id] == "" && !id.IsZero(), "%s and %s have the same id", what, seen[id])
			seen[id] = what
		}
	}
	// It must never change: appends were made with it.
	e := messages.Event{Partition: 3, PLogOffset: 7, Epoch: 2, RegisteredAt: 9}
	equal(t, "89e4dd59301a4406e0d36cbbe9b37312", fmt.Sprint(partition.DeliveryID("shop", "billing", &e)))
}

func TestSubscribeRefuses(t *testing.T) {
	d, _ := newDesk(t)
	c := newConsumer()
	good := quick("good", c)
	d.subscribe(good)
	tests := map[string]struct {
		change func(*partition.SubscriptionConfig)
		want   error
	}{
		"running": {func(*partition.SubscriptionConfig) {}, partition.ErrSubscribed},
		"no name": {func(c *partition.SubscriptionConfig) { c.Name = "" }, storage.ErrSubscription},
		"two sources": {func(c *partition.SubscriptionConfig) {
			c.Name, c.Partition, c.Workspace = "x", new(messages.PartitionID), new(messages.WSID)
		}, storage.ErrSubscription},
		"no partition": {func(c *partition.SubscriptionConfig) { c.Name, c.Partition = "x", new(messages.PartitionID(4)) }, storage.ErrSubscription},
		"from now": {func(c *partition.SubscriptionConfig) {
			c.Name, c.Partition, c.From = "x", new(messages.PartitionID(4)), partition.FromNow
		}, storage.ErrSubscription},
		"unknown kind":  {func(c *partition.SubscriptionConfig) { c.Name, c.Kinds = "x", []messages.WSKind{77} }, storage.ErrSubscription},
		"batch":         {func(c *partition.SubscriptionConfig) { c.Batch = -1 }, messages.ErrSettings},
		"bytes":         {func(c *partition.SubscriptionConfig) { c.Bytes = -1 }, messages.ErrSettings},
		"delays":        {func(c *partition.SubscriptionConfig) { c.MinDelay, c.MaxDelay = time.Second, time.Millisecond }, messages.ErrSettings},
		"delay":         {func(c *partition.SubscriptionConfig) { c.MinDelay = time.Microsecond }, messages.ErrSettings},
		"handler limit": {func(c *partition.SubscriptionConfig) { c.HandlerLimit = -1 }, messages.ErrSettings},
		"no handler":    {func(c *partition.SubscriptionConfig) { c.Handler = nil }, messages.ErrSettings},
		"from":          {func(c *partition.SubscriptionConfig) { c.From = 2 }, messages.ErrSettings},
		"on poison":     {func(c *partition.SubscriptionConfig) { c.OnPoison = 2 }, messages.ErrSettings},
	}
	for name, test := range tests {
		bad := good
		test.change(&bad)
		_, err := d.app.Subscribe(d.ctx, bad)
		wants(t, name, err, test.want)
	}
	noError(t, d.app.Subscriptions()[0].End(d.ctx))
	other := good
	other.Partition = new(messages.PartitionID(1))
	_, err := d.app.Subscribe(d.ctx, other)
	wants(t, "another source", err, storage.ErrSubscription)
	d.subscribe(good)
	d.check(d.undeploy())
	_, err = d.app.Subscribe(d.ctx, good)
	wants(t, "undeployed", err, partition.ErrStopped)
}

// A store that keeps no subscriptions.
func TestSubscribeWithoutStore(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := h.deploy(partition.Application{Descriptor: descriptor}, h.newStore(descriptor))
	_, err := app.Subscribe(h.ctx, quick("none", newConsumer()))
	wants(t, "subscribe", err, partition.ErrKeepsNone)
}

// A lane whose handler is slow keeps no other waiting.
func TestSubscriptionLanesAreIndependent(t *testing.T) {
	d, _ := newDesk(t)
	c := newConsumer()
	slow := make(chan struct{})
	config := quick("lanes", c)
	config.Handler = func(ctx context.Context, delivery partition.Delivery) error {
		if delivery.Partition == 1 {
			select {
			case <-slow:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return c.handle(ctx, delivery)
	}
	s := d.subscribe(config)
	d.write(1, 2, 1, 2)
	d.upTo(c, 2, 2)
	d.reaches(s, 1, messages.LaneHandling)
	equal(t, 0, len(c.got(1)))
	d.eventually("the other lane's position", func() bool { return d.status(s).Lag == 2 })
	status := d.status(s)
	isTrue(t, status.Behind > 0 && status.Lanes[1].Behind == status.Behind, "got %+v", status)
	close(slow)
	d.upTo(c, 1, 2)
}

// A handler that is waiting when the application is undeployed may finish; one that obeys its
// context is broken off; one that hangs is left behind. All in bounded time.
func TestUndeployWhileHandling(t *testing.T) {
	tests := map[string]struct {
		handler func(ctx context.Context, end <-chan struct{}) error
		want    error
	}{
		"obeys": {func(ctx context.Context, _ <-chan struct{}) error { <-ctx.Done(); return nil }, partition.ErrNotClean},
		"hangs": {func(_ context.Context, end <-chan struct{}) error { <-end; return nil }, partition.ErrNotClean},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, _ := newDesk(t)
			d.hurry()
			entered, end := make(chan struct{}), make(chan struct{})
			t.Cleanup(func() { close(end) })
			config := quick("handling", newConsumer())
			config.Handler = func(ctx context.Context, _ partition.Delivery) error {
				entered <- struct{}{}
				return test.handler(ctx, end)
			}
			s := d.subscribe(config)
			d.write(1)
			soon(d.house, "the handler", entered)
			wants(t, "undeploy", d.undeploy(), test.want)
			wants(t, "pause", s.Pause(d.ctx), partition.ErrStopped)
			d.deployAgain()
			c := newConsumer()
			d.subscribe(quick("handling", c))
			d.upTo(c, 1, 1)
			equal(t, []uint64{1}, c.got(1))
		})
	}
}

func TestUndeployLetsTheHandlerFinish(t *testing.T) {
	d, _ := newDesk(t)
	entered, end := make(chan struct{}), make(chan struct{})
	c := newConsumer()
	config := quick("handling", c)
	config.Handler = func(ctx context.Context, delivery partition.Delivery) error {
		entered <- struct{}{}
		<-end
		return c.handle(ctx, delivery)
	}
	s := d.subscribe(config)
	d.write(1)
	soon(d.house, "the handler", entered)
	ended := make(chan error, 1)
	go func() { ended <- d.undeploy() }()
	d.eventually("the stop", func() bool {
		_, err := d.app.Subscribe(d.ctx, quick("x", c))
		return errors.Is(err, partition.ErrStopped)
	})
	close(end)
	noError(t, soon(d.house, "undeploy", ended))
	stored, err := d.store.(storage.Subscriptions).Subscription(d.ctx, s.Name())
	noError(t, err)
	equal(t, uint64(2), stored.Next[1])
}

// A context that has ended, or a limit of the handler's time, ends a call.
func TestHandlerLimit(t *testing.T) {
	d, _ := newDesk(t)
	c := newConsumer()
	config := quick("limited", c)
	config.HandlerLimit = time.Millisecond
	first := true
	config.Handler = func(ctx context.Context, delivery partition.Delivery) error {
		if first {
			first = false
			<-ctx.Done()
			return ctx.Err()
		}
		return c.handle(context.Background(), delivery)
	}
	d.write(1)
	d.subscribe(config)
	d.upTo(c, 1, 1)
}

// A panic is a failure, with the panic as its reason.
func TestHandlerPanics(t *testing.T) {
	d, _ := newDesk(t)
	c := newConsumer()
	c.failWith(func(delivery partition.Delivery) error {
		if slices.Contains(offsetsOf(delivery), 2) {
			panic("injected")
		}
		return nil
	})
	d.write(1, 1, 1)
	s := d.subscribe(quick("panics", c))
	d.upTo(c, 1, 2)
	d.reaches(s, 1, messages.LaneWaiting)
	equal(t, []uint64{1, 3}, c.got(1))
	parked := d.parked(s)
	equal(t, 1, len(parked))
	isTrue(t, parked[0].Offset == 2 && strings.Contains(parked[0].Reason, "injected"), "got %+v", parked)
}
