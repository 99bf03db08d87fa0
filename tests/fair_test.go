package tests

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// queue is an observer that watches the Starts of partitions.
type queue struct {
	taken chan messages.WSID
	// hot counts the Starts of workspace 0 that were taken.
	hot atomic.Int64
	// overtaken gets for each Start of another workspace how many hot ones overtook it.
	mu        sync.Mutex
	since     map[*messages.Start]int64
	overtaken []int64
}

func (q *queue) Posted(_ actors.Key, message any) {
	start, ok := message.(*messages.Start)
	if !ok {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.since != nil && start.Workspace != 0 {
		q.since[start] = q.hot.Load()
	}
}

func (q *queue) Taken(_ actors.Key, message any) {
	start, ok := message.(*messages.Start)
	if !ok {
		return
	}
	if q.taken != nil {
		q.taken <- start.Workspace
	}
	if start.Workspace == 0 {
		q.hot.Add(1)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.since != nil {
		q.overtaken = append(q.overtaken, q.hot.Load()-q.since[start])
		delete(q.since, start)
	}
}

func (*queue) Handled(actors.Key, any) {}

// polite is a client that gives back the transaction that it is granted.
type polite struct{ partition *actor.PID }

func (f polite) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*messages.Started); ok {
		ctx.Request(f.partition, &messages.Cancel{Token: m.Token})
	}
}

// TestFirstComeFirstServed lets many Starts wait at one partition: each is served,
// in the order in which they came.
func TestFirstComeFirstServed(t *testing.T) {
	const clients = 200
	q := &queue{taken: make(chan messages.WSID, 2*clients)}
	s := newSite(t, 1, neverFlushed())
	s.options = partition.Options{Observer: q}
	d := s.run(t)
	for i := range messages.WSID(clients) {
		d.commit(t, i, seqInvoice) // nobody waits for numbers to be loaded
		<-q.taken
	}
	first := d.open(t, 0)
	<-q.taken
	target := must(d.app.Sequencer(0))(t).PID()
	for i := range messages.WSID(clients) {
		// A client that is an actor of its own; a post is done when Request returns.
		client := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return polite{target} }))
		defer system.Root.Stop(client)
		system.Root.RequestWithCustomSender(target, &messages.Start{Workspace: i, Kind: kindShop}, client)
	}
	check(t, first.Cancel(limit(t)))
	ctx := limit(t)
	for i := range messages.WSID(clients) {
		select {
		case got := <-q.taken:
			if got != i {
				t.Fatalf("client %d was served in place of client %d", got, i)
			}
		case <-ctx.Done():
			t.Fatalf("client %d: %v", i, context.Cause(ctx))
		}
	}
	d.invoice(t, 0, 2)
	d.stop(t)
}

// TestHotWorkspace lets many clients hammer one workspace, while one client uses
// others: it waits for no more of them than were there before it. A small lane and a
// small cache make it worse.
func TestHotWorkspace(t *testing.T) {
	const hot = 24
	for name, lane := range map[string]int{"wide lane": 1024, "narrow lane": 4} {
		t.Run(name, func(t *testing.T) {
			q := &queue{since: make(map[*messages.Start]int64)}
			s := newSite(t, 1, often)
			s.app.RequestLane, s.app.CacheNumbers = lane, 1
			s.options = partition.Options{Observer: q}
			d := s.run(t)
			ctx, cancel := context.WithCancel(limit(t))
			var clients sync.WaitGroup
			for range hot {
				clients.Go(func() {
					for ctx.Err() == nil {
						_, _ = commit(ctx, d.app, 0, seqInvoice)
					}
				})
			}
			for n := range messages.Number(30) {
				d.invoice(t, messages.WSID(1+n%3), n/3+1)
			}
			cancel()
			clients.Wait()
			// One more may be between its posting and our counting. The machine may stop a client between its
			// count and its place in the lane, so that any number goes first: hence the median.
			slices.Sort(q.overtaken)
			if median := q.overtaken[len(q.overtaken)/2]; median > hot+1 {
				t.Errorf("%d hot transactions went first, want at most the %d that waited: %d", median, hot, q.overtaken)
			}
			check(t, d.app.Ready(limit(t)))
			_ = d.parts.Close(limit(t))
			// A flush whose partition was stopped meanwhile may still land: the store is
			// only quiet when it is closed.
			check(t, d.store.Close(limit(t)))
			s.look(t, nil)
		})
	}
}

// TestEveryoneIsServed lets more clients than the lane holds work on few
// workspaces: nobody starves, and the numbers are theirs.
func TestEveryoneIsServed(t *testing.T) {
	const clients, each = 40, 5
	s := newSite(t, 1, partition.Settings{})
	s.app.RequestLane = 3
	d := s.run(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := make(map[messages.Number]bool)
	for range clients {
		all.Go(func() {
			for range each {
				tx, err := commit(limit(t), d.app, 7, seqInvoice)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen[tx.Numbers()[0].Number] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(seen) != clients*each {
		t.Errorf("got %d numbers, want %d", len(seen), clients*each)
	}
	d.invoice(t, 7, clients*each+1)
	d.stop(t)
}
