package actors_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// First come, first served: transactions are granted in the order of their Starts.
func TestClientTurnsAreFair(t *testing.T) {
	for _, name := range []string{"Start", "StartWaiting"} {
		t.Run(name, func(t *testing.T) {
			const clients = 50
			r := readyRig(t, setup{})
			open := r.start(7)
			var mu sync.Mutex
			var order []int
			var all sync.WaitGroup
			for i := range clients {
				all.Go(func() {
					tx, err := r.starts()[name](r.ctx, shop, messages.WSID(100+i%3))
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
					if err := tx.Commit(r.ctx, nil); err != nil {
						t.Error(err)
					}
				})
				r.queued(i + 1)
			}
			r.check(open.Commit(r.ctx, nil))
			all.Wait()
			// A workspace that must be loaded first lets others pass: only the three loads
			// can change places, and whoever waits for them.
			for ws := range 3 {
				mine := slices.DeleteFunc(slices.Clone(order), func(i int) bool { return i%3 != ws })
				if !slices.IsSorted(mine) {
					t.Errorf("workspace %d: got order %v", ws, mine)
				}
			}
			if len(order) != clients {
				t.Errorf("%d of %d clients had their turn", len(order), clients)
			}
		})
	}
}

// While no load is needed the order is strict, whatever the workspaces are.
func TestClientTurnsOfCachedWorkspacesAreStrict(t *testing.T) {
	r := readyRig(t, setup{})
	for ws := range messages.WSID(3) {
		r.commit(ws)
	}
	open := r.start(0)
	order := make(chan int, 30)
	var all sync.WaitGroup
	for i := range cap(order) {
		all.Go(func() {
			tx, err := r.sequencers[0].Start(r.ctx, shop, messages.WSID(i%3))
			if err != nil {
				t.Error(err)
				return
			}
			order <- i
			if err := tx.Cancel(r.ctx); err != nil {
				t.Error(err)
			}
		})
		r.queued(i + 1)
	}
	r.check(open.Cancel(r.ctx))
	all.Wait()
	for want := range cap(order) {
		if got := <-order; got != want {
			t.Fatalf("got client %d at place %d", got, want)
		}
	}
}

// A full lane: Start is refused at once with a hint, StartWaiting waits in order,
// and nobody overtakes those who wait.
func TestClientFullLane(t *testing.T) {
	const lane, waiters = 2, 5
	r := readyRig(t, setup{requests: lane})
	r.commit(7)
	open := r.start(7)
	order := make(chan string, lane+waiters)
	var all sync.WaitGroup
	turn := func(name string, start func(context.Context, messages.WSKind, messages.WSID, ...actors.StartOption) (*actors.Transaction, error)) {
		all.Go(func() {
			tx, err := start(r.ctx, shop, 7)
			if err != nil {
				t.Error(err)
				return
			}
			order <- name
			if err := tx.Commit(r.ctx, nil); err != nil {
				t.Error(err)
			}
		})
	}
	var want []string
	for i := range lane {
		turn(fmt.Sprint("queued ", i), r.sequencers[0].Start)
		want = append(want, fmt.Sprint("queued ", i))
		r.queued(1 + i)
	}
	r.refusesForFullLane()
	for i := range waiters {
		turn(fmt.Sprint("waiter ", i), r.sequencers[0].StartWaiting)
		want = append(want, fmt.Sprint("waiter ", i))
		r.queued(lane + 1 + i)
	}
	ctx, leave := r.client()
	gone := make(chan error, 1)
	go func() {
		_, err := r.sequencers[0].StartWaiting(ctx, shop, 7)
		gone <- err
	}()
	r.queued(lane + 1 + waiters)
	leave()
	wants(t, "who waited for room", next(t, gone), errGone)
	r.check(open.Commit(r.ctx, nil))
	all.Wait()
	close(order)
	var got []string
	for name := range order {
		got = append(got, name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	r.getsThrough(7)
}

func (r *rig) refusesForFullLane() {
	r.t.Helper()
	_, err := r.sequencers[0].Start(r.ctx, shop, 7)
	var busy *messages.BusyError
	if !errors.As(err, &busy) || busy.Reason != messages.BusyMailboxFull || busy.RetryAfter <= 0 || !errors.Is(err, messages.ErrBusy) {
		r.t.Fatalf("got %v, want a full mailbox with a hint", err)
	}
}

// Cancels, flushes and the rest of an open transaction pass a full lane.
func TestClientFullLaneDoesNotStopTheOpenTransaction(t *testing.T) {
	r := readyRig(t, setup{requests: 1})
	open := r.start(7)
	ctx, leave := r.client()
	waiting := make(chan error, 1)
	go func() {
		_, err := r.sequencers[0].Start(ctx, shop, 7)
		waiting <- err
	}()
	r.queued(1)
	r.refusesForFullLane()
	_, err := open.Next(r.ctx, invoices)
	r.check(err)
	r.check(open.Commit(r.ctx, nil))
	wants(t, "the one in the lane", next(t, waiting), nil)
	leave()
	r.getsThrough(7)
}

// Whoever waits when the partition stops is answered: those in the lane, and
// those who wait for room.
func TestClientWaitingWhenStopped(t *testing.T) {
	r := readyRig(t, setup{requests: 2})
	open := r.start(7)
	answers := make(chan error, 4)
	for i := range 4 {
		go func() {
			_, err := r.sequencers[0].StartWaiting(r.ctx, shop, 7)
			answers <- err
		}()
		r.queued(1 + i)
	}
	stopped := make(chan messages.Stopped, 1)
	go func() { stopped <- r.stop(0) }()
	r.await(0, messages.StateTerminating)
	for range 4 {
		if err := next(t, answers); !errors.Is(err, messages.ErrBusy) && !errors.Is(err, messages.ErrStopped) {
			t.Errorf("got %v", err)
		}
	}
	_, err := open.Next(r.ctx, invoices)
	r.check(err)
	r.check(open.Commit(r.ctx, nil))
	if s := next(t, stopped); !s.Clean || s.Abandoned != 0 {
		t.Errorf("got %+v, want a clean stop", s)
	}
	for name, start := range r.starts() {
		_, err := start(r.ctx, shop, 7)
		wants(t, name, err, messages.ErrStopped)
	}
	if s := r.stop(0); !s.Clean {
		t.Errorf("stopped again: got %+v", s)
	}
}
