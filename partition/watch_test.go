package partition_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// TestWatch: whoever watches gets all partitions first, then what changes, up to the end.
func TestWatch(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := h.deploy(partition.Application{Descriptor: descriptor}, h.newStore(descriptor))
	h.check(app.Ready(h.ctx))
	n, last, ended := 0, make(map[messages.PartitionID]partition.ActorStatus), make(chan error, 1)
	for s, err := range app.Watch(h.ctx) {
		h.check(err)
		if n < len(app.Status()) && (s.Group != "partition" || s.ID != strconv.Itoa(n) || int(s.Partition.Partition) != n || s.State != messages.StateNormal) {
			t.Errorf("status %d is %+v", n, s)
		}
		last[s.Partition.Partition] = s
		if n++; n == len(app.Status()) { // a slow reader: all that follows happens while it does not look
			go func() { ended <- h.parts.Undeploy(h.ctx, descriptor.Application) }()
			h.check(<-ended)
		}
	}
	for i, s := range last {
		if s.State != messages.StateTerminated || !s.Partition.Clean {
			t.Errorf("partition %d: got %+v at last, want terminated", i, s)
		}
	}
	if want := 2 * len(app.Status()); n != want || len(last) != len(app.Status()) {
		t.Errorf("got %d statuses of %d partitions, want %d: what came in between is passed over", n, len(last), want)
	}
}

// TestWatchWakes: a change wakes all who wait for one.
func TestWatchWakes(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := h.deploy(partition.Application{Descriptor: descriptor}, h.newStore(descriptor))
	h.check(app.Ready(h.ctx))
	const watchers = 20
	var watching, woken sync.WaitGroup
	watching.Add(watchers)
	for range watchers {
		woken.Go(func() {
			n := 0
			for s, err := range app.Watch(h.ctx) {
				if err != nil || n >= len(app.Status()) && s.State == messages.StateNormal {
					t.Errorf("got %+v, %v", s, err)
				}
				if n++; n == len(app.Status()) {
					watching.Done()
				}
			}
		})
	}
	watching.Wait()
	h.check(h.parts.Undeploy(h.ctx, descriptor.Application))
	woken.Wait()
}

// TestWatchEnds: the end of the context ends it, also when it waits.
func TestWatchEnds(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := h.deploy(partition.Application{Descriptor: descriptor}, h.newStore(descriptor))
	h.check(app.Ready(h.ctx))
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(h.ctx)
	defer cancel(nil)
	n := 0
	var last error
	for _, err := range app.Watch(ctx) {
		last = err
		if n++; n == len(app.Status()) {
			go cancel(enough)
		}
	}
	if n != len(app.Status())+1 || !errors.Is(last, enough) {
		t.Errorf("got %d statuses, at last %v", n, last)
	}
}
