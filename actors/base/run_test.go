package base_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors/base"
)

// runBench is a bench whose senders may do the actor's work.
type runBench struct{ *bench }

type senderDispatcher struct{ *manualDispatcher }

func (senderDispatcher) SenderRuns() {}

// plainDispatcher is one that wants to run all actors itself.
type plainDispatcher struct{ actor.Dispatcher }

func newRunBench(t *testing.T, requests int) runBench {
	t.Helper()
	b := newBench(t, newSystem(), requests, nil)
	b.RegisterHandlers(b, senderDispatcher{&b.manualDispatcher})
	b.Start()
	return runBench{b}
}

// post posts what its sender waits for.
func (b runBench) post(number int) { b.PostAndRun(b.sender.From(&query{number})) }

// expectBySender checks what the actor got since the last call without the dispatcher.
func (b runBench) expectBySender(t *testing.T, want ...any) {
	t.Helper()
	work := b.work
	b.work = nil
	b.expect(t, want...)
	b.work = work
}

// expectByDispatcher does the work that is left, and checks what the actor got.
func (b runBench) expectByDispatcher(t *testing.T, want ...any) {
	t.Helper()
	if (b.work != nil) != (len(want) > 0) {
		t.Errorf("work is left: %t, want %v", b.work != nil, want)
	}
	b.expect(t, want...)
}

func TestMailboxSenderRuns(t *testing.T) {
	b := newRunBench(t, 8)
	b.post(1)
	b.PostAndRun(&note{2})
	if err := b.AwaitPost(t.Context(), b.sender.From(&query{3})); err != nil {
		t.Error(err)
	}
	b.expectBySender(t, 1, -2, 3)
	b.expectByDispatcher(t)
	b.query(4)
	b.expectBySender(t)
	b.expectByDispatcher(t, 4)
}

func TestMailboxSenderRunsAFew(t *testing.T) {
	b := newRunBench(t, 8)
	b.on = func(message any) {
		if q, ok := message.(*query); ok && q.number < 6 {
			b.query(q.number + 1)
		}
	}
	b.post(1)
	b.expectBySender(t, 1, 2, 3, 4)
	b.expectByDispatcher(t, 5, 6)
}

func TestMailboxSenderFindsTheActorAtWork(t *testing.T) {
	b := newRunBench(t, 8)
	b.query(1) // its work is scheduled
	b.post(2)
	b.expectBySender(t)
	b.expectByDispatcher(t, 1, 2)
}

func TestMailboxSenderLeavesSystemMessages(t *testing.T) {
	b := newRunBench(t, 8)
	b.on = func(message any) {
		if q, ok := message.(*query); ok && q.number == 1 {
			b.PostSystemMessage(&actor.Stop{})
			b.query(2)
		}
	}
	b.post(1)
	b.expectBySender(t, 1)
	b.expectByDispatcher(t, "*actor.Stop", 2)
}

func TestMailboxSenderRunsNobodyWhoIsHeld(t *testing.T) {
	b := newRunBench(t, 1)
	b.Hold()
	b.post(1)
	b.expectBySender(t)
	b.expectByDispatcher(t)
	b.post(2)
	b.expectAnswers(t, refused{2, base.LaneFull})
	b.PostAndRun(&note{3})
	b.expectBySender(t, -3)
	b.Release()
	b.expectByDispatcher(t, 1)
	b.Close()
	b.post(4)
	b.expectAnswers(t, refused{4, base.Closed})
}

func TestMailboxSenderRunsIntoAPanic(t *testing.T) {
	b := newRunBench(t, 8)
	b.on = func(message any) {
		if q, ok := message.(*query); ok && q.number == 1 {
			b.query(2)
			panic("1")
		}
	}
	b.post(1)
	if len(b.failures) != 1 {
		t.Errorf("got failures %v", b.failures)
	}
	b.expectBySender(t, 1)
	b.expect(t) // suspended
	b.PostSystemMessage(&actor.ResumeMailbox{})
	b.expectByDispatcher(t, 2)
}

// Whatever becomes of the sender's goroutine, the actor goes on.
func TestMailboxSenderDiesAtWork(t *testing.T) {
	b := newRunBench(t, 8)
	b.on = func(message any) {
		if q, ok := message.(*query); ok && q.number == 1 {
			b.query(2)
			runtime.Goexit()
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.post(1)
	}()
	<-ended
	b.expectBySender(t, 1)
	b.expectByDispatcher(t, 2)
}

// Everybody is answered although the actor panics on senders' goroutines and is restarted.
func TestMailboxStressSendersRunIntoPanics(t *testing.T) {
	h := newHouse(t)
	const senders, each = 24, 400
	m := h.mailbox(64)
	inside, overlaps := false, 0
	pid := h.spawn(t, m, receive(func(c actor.Context) {
		q, ok := c.Message().(*query)
		if !ok {
			return
		}
		if inside {
			overlaps++
		}
		inside = true
		c.Respond(q.number)
		inside = false
		if q.number%97 == 0 {
			panic(q.number)
		}
	}), actor.WithGuardian(base.NewGuardian(base.RestartPolicy{MinDelay: 1, MaxDelay: 1}, answerInterrupted)))
	var all sync.WaitGroup
	for s := range senders {
		ask := h.asks(m)[s%3]
		all.Go(func() {
			for number := s * each; number < (s+1)*each; number++ {
				if reply, err := ask(context.Background(), pid, &query{number}, nil); err != nil || reply != number && reply != (refused{number, base.LaneFull}) {
					t.Errorf("query %d: got %v, %v", number, reply, err)
				}
			}
		})
	}
	all.Wait()
	h.stop(t, pid)
	if overlaps > 0 {
		t.Errorf("two goroutines ran the actor %d times", overlaps)
	}
}

func TestMailboxSenderLeavesTheWorkToAnotherDispatcher(t *testing.T) {
	b := runBench{newBench(t, newSystem(), 8, nil)}
	b.Start()
	b.post(1)
	b.expectBySender(t)
	b.expectByDispatcher(t, 1)
}
