package partition_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

// desk is a deployed application over a store that keeps subscriptions.
type desk struct {
	*house
	holds holds
	store storage.Store
	app   *partition.App
	// stopLimit is the setting, if it is not the default.
	stopLimit time.Duration
}

// newDesk deploys over a store in memory into which faults can be planted.
func newDesk(t *testing.T) (*desk, *storagetest.Faulty) {
	t.Helper()
	h, holds := subscribingHouse(t)
	faulty := h.newStore(descriptor)
	store, err := storagetest.NewSubscribing(faulty)
	h.check(err)
	return openDesk(h, holds, store), faulty
}

// holds gets a value when a lane is asked to hold.
type holds chan struct{}

// Posted implements [partition.Observer].
func (h holds) Posted(_ actors.Key, message any) {
	if _, hold := message.(*messages.HoldLane); hold {
		select {
		case h <- struct{}{}:
		default: // nobody counts that many
		}
	}
}

// Taken implements [partition.Observer].
func (holds) Taken(actors.Key, any) {}

// Handled implements [partition.Observer].
func (holds) Handled(actors.Key, any) {}

func subscribingHouse(t *testing.T) (*house, holds) {
	t.Helper()
	watched := make(holds, 1000)
	return newHouse(t, partition.Options{RestartDelay: time.Millisecond, Observer: watched}), watched
}

func openDesk(h *house, holds holds, store storage.Store) *desk {
	d := &desk{house: h, holds: holds, store: store}
	d.deployAgain()
	return d
}

// eachDesk runs a test over each store.
func eachDesk(t *testing.T, test func(t *testing.T, d *desk)) {
	t.Run("memory", func(t *testing.T) {
		d, _ := newDesk(t)
		test(t, d)
	})
	t.Run("bolt", func(t *testing.T) {
		s, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "store"), descriptor, bolt.Options{Create: true, MmapSize: 1 << 20})
		noError(t, err)
		t.Cleanup(func() { noError(t, s.Close(context.Background())) })
		h, holds := subscribingHouse(t)
		test(t, openDesk(h, holds, s))
	})
}

func (d *desk) deployAgain() {
	d.t.Helper()
	app := partition.Application{Descriptor: descriptor}
	app.Settings.StopLimit = d.stopLimit
	d.app = d.deploy(app, d.store)
}

// hurry makes what hangs be left behind soon.
func (d *desk) hurry() {
	d.t.Helper()
	d.stopLimit = 20 * time.Millisecond
	d.check(d.app.Reconfigure(d.ctx, partition.Settings{StopLimit: d.stopLimit}))
}

func (d *desk) undeploy() error { return d.parts.Undeploy(d.ctx, descriptor.Application) }

// restart undeploys, which must be clean, and deploys again.
func (d *desk) restart() {
	d.t.Helper()
	d.check(d.undeploy())
	d.deployAgain()
}

// write appends an event to each workspace given.
func (d *desk) write(workspaces ...messages.WSID) {
	d.t.Helper()
	for _, ws := range workspaces {
		s, err := d.app.SequencerOf(ws)
		d.check(err)
		_, err = s.Append(d.ctx, partition.AppendTo{Workspace: ws, Kind: shop, Wait: true}, partition.Draft{Body: []byte("written")})
		d.check(err)
	}
}

// writeMany appends n events to a workspace.
func (d *desk) writeMany(n int, ws messages.WSID) {
	d.t.Helper()
	for range n {
		d.write(ws)
	}
}

func (d *desk) subscribe(c partition.SubscriptionConfig) *partition.Subscription {
	d.t.Helper()
	s, err := d.app.Subscribe(d.ctx, c)
	d.check(err)
	return s
}

// status returns that of a subscription.
func (d *desk) status(s *partition.Subscription) partition.SubscriptionStatus {
	d.t.Helper()
	status, err := s.Status(d.ctx)
	d.check(err)
	return status
}

// reaches waits until a lane is in a state.
func (d *desk) reaches(s *partition.Subscription, p messages.PartitionID, want messages.LaneState) {
	d.t.Helper()
	d.eventually("lane "+want.String(), func() bool {
		for _, lane := range d.status(s).Lanes {
			if lane.Partition == p {
				return lane.State == want
			}
		}
		return false
	})
}

func (d *desk) parked(s *partition.Subscription) (all []partition.ParkedEvent) {
	d.t.Helper()
	for e, err := range s.Parked(d.ctx) {
		d.check(err)
		all = append(all, e)
	}
	return all
}

// consumer is a handler that keeps what it has handled.
type consumer struct {
	mu sync.Mutex
	// fails, if set, says why a batch is not handled.
	fails   func(partition.Delivery) error
	handled map[messages.PartitionID][]uint64
	// calls has the offsets of each call.
	calls map[messages.PartitionID][][]uint64
}

func newConsumer() *consumer {
	return &consumer{handled: make(map[messages.PartitionID][]uint64), calls: make(map[messages.PartitionID][][]uint64)}
}

func (c *consumer) handle(_ context.Context, d partition.Delivery) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	offsets := offsetsOf(d)
	c.calls[d.Partition] = append(c.calls[d.Partition], offsets)
	if c.fails != nil {
		if err := c.fails(d); err != nil {
			return err
		}
	}
	c.handled[d.Partition] = append(c.handled[d.Partition], offsets...)
	return nil
}

// failWith says why batches are not handled from now on.
func (c *consumer) failWith(fails func(partition.Delivery) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails = fails
}

func (c *consumer) got(p messages.PartitionID) []uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]uint64(nil), c.handled[p]...)
}

// called returns the offsets of each call.
func (c *consumer) called(p messages.PartitionID) [][]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([][]uint64(nil), c.calls[p]...)
}

func offsetsOf(d partition.Delivery) []uint64 {
	offsets := make([]uint64, 0, len(d.Events))
	for _, e := range d.Events {
		offsets = append(offsets, e.Offset)
	}
	return offsets
}

// upTo waits until so many events of a partition were handled.
func (d *desk) upTo(c *consumer, p messages.PartitionID, n int) {
	d.t.Helper()
	d.eventually("events", func() bool { return len(c.got(p)) >= n })
}

// oneTo returns the numbers from 1 to n.
func oneTo(n uint64) []uint64 { return fromTo(1, n) }

func fromTo(from, to uint64) []uint64 {
	var all []uint64
	for i := from; i <= to; i++ {
		all = append(all, i)
	}
	return all
}

// quick are settings with which nothing is waited for long.
func quick(name string, c *consumer) partition.SubscriptionConfig {
	return partition.SubscriptionConfig{
		Name: name, Handler: c.handle, MinDelay: time.Millisecond, MaxDelay: time.Millisecond, MaxTries: 2,
	}
}
