package base_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors/base"
	"github.com/partita-go/partita/messages"
)

// asker is [base.Ports.Ask], or what posts in another way.
type asker func(ctx context.Context, pid *actor.PID, message any, late func(any)) (any, error)

// asks are the ways to ask the actor that has m, waiting for room first.
func (h *house) asks(m *base.Mailbox) [3]asker {
	run := func(_ context.Context, message any) error {
		m.PostAndRun(message)
		return nil
	}
	return [3]asker{h.ports.AskBy(m.AwaitPost), h.ports.Ask, h.ports.AskBy(run)}
}

// An actor that sends to itself while its lane is full goes on.
func TestMailboxSelfSendOnAFullLane(t *testing.T) {
	h := newHouse(t)
	got := make(chan any, 10)
	pid := h.spawn(t, h.mailbox(1), receive(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *query:
			got <- m.number
			if m.number == 1 {
				c.Request(c.Self(), &query{2})
				c.Request(c.Self(), &query{3})
			}
		case refused:
			got <- m
		}
	}))
	h.system.Root.Send(pid, &query{1})
	for _, want := range []any{1, refused{3, base.LaneFull}, 2} {
		if m := next(t, got); m != want {
			t.Errorf("got %v, want %v", m, want)
		}
	}
}

// Every request is answered exactly once, by the actor or by its mailbox, while the
// request lane is put on hold and released all the time.
func TestMailboxStressNoRequestIsLost(t *testing.T) {
	h := newHouse(t)
	const senders, each = 32, 1_000
	m := h.mailbox(8)
	pid := h.spawn(t, m, receive(func(c actor.Context) {
		switch q := c.Message().(type) {
		case *query:
			m.Hold()
			c.Respond(q.number)
			if q.number%3 == 0 {
				m.Release()
				m.Hold()
			}
			c.Send(c.Self(), &note{})
		case *note:
			m.Release()
		}
	}))
	m.Hold() // until somebody meets a full lane
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var answered, full atomic.Int64
	var all sync.WaitGroup
	for s := range senders {
		ask := h.asks(m)[s%3]
		all.Go(func() {
			for n := range each {
				number := s*each + n
				reply, err := ask(ctx, pid, &query{number}, nil)
				switch {
				case err == nil && reply == number:
					answered.Add(1)
				case err == nil && reply == refused{number, base.LaneFull} && s%3 != 0:
					if full.Add(1) == 1 {
						m.Release()
					}
				default:
					t.Errorf("query %d: got %v, %v", number, reply, err)
					return
				}
			}
		})
	}
	all.Wait()
	if answered.Load()+full.Load() != senders*each || full.Load() == 0 {
		t.Errorf("got %d answers and %d refusals", answered.Load(), full.Load())
	}
	t.Logf("%d answers, %d refusals", answered.Load(), full.Load())
}

// Whoever asks while an actor stops is answered, with a backlog or without.
func TestMailboxStopWithABacklogAnswersEverybody(t *testing.T) {
	h := newHouse(t)
	for round := range 50 {
		m := h.mailbox(64)
		begun := make(chan struct{}, 1)
		pid := h.spawn(t, m, receive(func(c actor.Context) {
			switch c.Message().(type) {
			case *query:
				select {
				case begun <- struct{}{}:
				default:
				}
				if round%2 == 0 {
					m.Hold() // the rest becomes a backlog
				}
				c.Respond("done")
			case *actor.Stopped:
				m.Close()
			}
		}))
		var all sync.WaitGroup
		for n := range 32 {
			ask := h.asks(m)[n%3]
			all.Go(func() {
				for {
					reply, err := ask(context.Background(), pid, &query{n}, nil)
					switch {
					case errors.Is(err, messages.ErrStopped):
						return
					case err != nil:
						t.Errorf("query %d: %v", n, err)
						return
					case reply == refused{n, base.Closed}:
						return
					case reply != "done" && reply != refused{n, base.LaneFull}:
						t.Errorf("query %d: got %v", n, reply)
						return
					}
				}
			})
		}
		next(t, begun)
		h.system.Root.Stop(pid)
		all.Wait()
		if n := m.UserMessageCount(); n != 0 {
			t.Errorf("%d messages are left", n)
		}
	}
}
