package base_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors/base"
	"github.com/partita-go/partita/messages"
)

var errEnough = errors.New("enough")

// endedContext returns a context that has ended because of errEnough.
func endedContext() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errEnough)
	return ctx
}

// awaitPost posts a query in a goroutine, which waits when awaitPost returns.
func (b *bench) awaitPost(ctx context.Context, number int) <-chan error {
	result := make(chan error, 1)
	go func() { result <- b.AwaitPost(ctx, b.sender.From(&query{number})) }()
	synctest.Wait()
	return result
}

func TestMailboxAwaitPostWithRoomPostsAtOnce(t *testing.T) {
	b := newBench(t, newSystem(), 2, nil)
	b.Start()
	if err := b.AwaitPost(context.Background(), b.sender.From(&query{1})); err != nil {
		t.Error(err)
	}
	if err := b.AwaitPost(endedContext(), b.sender.From(&query{2})); !errors.Is(err, errEnough) {
		t.Errorf("got %v, want the cause", err)
	}
	b.expect(t, 1)
}

func TestMailboxAwaitPostIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSystem(), 1, nil)
		b.Start()
		b.query(0)
		ctx, cancel := context.WithCancelCause(t.Context())
		first := b.awaitPost(t.Context(), 1)
		second := b.awaitPost(ctx, 2)
		third := b.awaitPost(t.Context(), 3)
		b.on = func(message any) {
			if message.(*query).number < 3 {
				b.query(10) // must not overtake those who wait
			}
		}
		cancel(errEnough)
		if err := <-second; !errors.Is(err, errEnough) {
			t.Errorf("got %v, want the cause", err)
		}
		if len(first)+len(third) > 0 {
			t.Error("somebody did not wait")
		}
		b.expect(t, 0, 1, 3)
		if err := errors.Join(<-first, <-third); err != nil {
			t.Error(err)
		}
		b.expectAnswers(t, refused{10, base.LaneFull}, refused{10, base.LaneFull})
	})
}

func TestMailboxAwaitPostEndsWhenTheMailboxCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSystem(), 1, nil)
		b.Start()
		b.query(0)
		waiting := b.awaitPost(t.Context(), 1)
		b.Close()
		if err := <-waiting; !errors.Is(err, messages.ErrStopped) {
			t.Errorf("got %v", err)
		}
		if err := b.AwaitPost(t.Context(), &query{2}); !errors.Is(err, messages.ErrStopped) {
			t.Errorf("got %v", err)
		}
		b.expect(t)
		b.expectAnswers(t, refused{0, base.Closed}) // not 1: its sender knows by the error
	})
}

// Whoever is told that the request is queued gets it handled, whoever is told an
// error does not, while contexts end and places become free at the same time.
func TestMailboxAwaitPostTellsTheTruth(t *testing.T) {
	h := newHouse(t)
	const senders, each = 8, 400
	var handled [senders * each]atomic.Int32
	m := h.mailbox(2)
	// If the senders did the actor's work, hardly anybody would wait.
	pid := h.spawn(t, m, receive(func(c actor.Context) {
		if q, ok := c.Message().(*query); ok {
			handled[q.number].Add(1)
			if c.Sender() != nil {
				c.Respond(q)
			}
		}
	}), actor.WithDispatcher(plainDispatcher{h.dispatcher}))
	var queued [senders * each]bool
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for n := range each {
				ctx, cancel := context.WithCancel(context.Background())
				if rand.IntN(2) == 0 {
					all.Go(cancel)
				}
				number := s*each + n
				queued[number] = m.AwaitPost(ctx, &query{number}) == nil
				cancel()
			}
		})
	}
	all.Wait()
	// The last in the lane.
	if _, err := h.ports.AskBy(m.AwaitPost)(context.Background(), pid, &query{0}, nil); err != nil {
		t.Fatal(err)
	}
	for number := range queued {
		want := int32(0)
		if queued[number] {
			want = 1
		}
		if number == 0 {
			want++
		}
		if got := handled[number].Load(); got != want {
			t.Fatalf("query %d: handled %d times, want %d", number, got, want)
		}
	}
}
