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

// hand is an actor's address at which questions are kept until the test answers.
func hand(t *testing.T, h *house) *envelopes {
	t.Helper()
	e := &envelopes{questions: make(chan *actor.MessageEnvelope, 100)}
	e.pid, _ = h.system.ProcessRegistry.Add(e, "hand"+h.system.ProcessRegistry.NextId())
	return e
}

type envelopes struct {
	pid       *actor.PID
	questions chan *actor.MessageEnvelope
}

func (e *envelopes) SendUserMessage(_ *actor.PID, message any) {
	e.questions <- message.(*actor.MessageEnvelope)
}
func (e *envelopes) SendSystemMessage(*actor.PID, any) {}
func (e *envelopes) Stop(*actor.PID)                   {}

// answer is what Ask returned.
type answer struct {
	reply any
	err   error
}

func (h *house) askInBackground(ctx context.Context, pid *actor.PID, number int, late func(any)) <-chan answer {
	result := make(chan answer, 1)
	go func() {
		reply, err := h.ports.Ask(ctx, pid, &query{number}, late)
		result <- answer{reply, err}
	}()
	return result
}

func TestPortAnswer(t *testing.T) {
	h := newHouse(t)
	to := hand(t, h)
	for _, ctx := range []context.Context{context.Background(), t.Context()} {
		result := h.askInBackground(ctx, to.pid, 7, func(any) { t.Error("late") })
		q := next(t, to.questions)
		if q.Message.(*query).number != 7 {
			t.Errorf("got question %v", q.Message)
		}
		h.system.Root.Send(q.Sender, &actor.MessageEnvelope{Message: "done"})
		if got := next(t, result); got != (answer{"done", nil}) {
			t.Errorf("got %v", got)
		}
	}
	if n := registered(h.system, "port"); n != 1 {
		t.Errorf("got %d ports, want 1 that was used again", n)
	}
}

func TestPortOfADeadActor(t *testing.T) {
	h := newHouse(t)
	nobody := h.system.NewLocalPID("nobody")
	for range 3 {
		if reply, err := h.ports.Ask(t.Context(), nobody, &query{}, nil); !errors.Is(err, messages.ErrStopped) {
			t.Errorf("got %v, %v", reply, err)
		}
	}
}

func TestPortSendsNothingWhenTheContextHasEnded(t *testing.T) {
	h := newHouse(t)
	to := hand(t, h)
	if _, err := h.ports.Ask(endedContext(), to.pid, &query{}, nil); !errors.Is(err, errEnough) {
		t.Errorf("got %v, want the cause", err)
	}
	if len(to.questions) > 0 {
		t.Error("the question was sent")
	}
}

func TestPortLateAnswerIsDeliveredOnce(t *testing.T) {
	h := newHouse(t)
	to := hand(t, h)
	ctx, cancel := context.WithCancelCause(context.Background())
	lates := make(chan any, 10)
	result := h.askInBackground(ctx, to.pid, 1, func(reply any) { lates <- reply })
	q := next(t, to.questions)
	cancel(errEnough)
	if got := next(t, result); !errors.Is(got.err, errEnough) {
		t.Errorf("got %v, want the cause", got)
	}
	h.ports.Close() // the port that was given up stays
	h.system.Root.Send(q.Sender, "first")
	h.system.Root.Send(q.Sender, "second")
	if len(lates) != 1 || <-lates != "first" {
		t.Error("want exactly the first answer")
	}
	if n := registered(h.system, "port"); n != 0 {
		t.Errorf("%d ports are left", n)
	}
}

func TestPortGivenUpWithoutLate(t *testing.T) {
	h := newHouse(t)
	to := hand(t, h)
	for _, reply := range []any{"answer", &actor.DeadLetterResponse{}} {
		ctx, cancel := context.WithCancelCause(context.Background())
		var late func(any)
		if reply != "answer" {
			late = func(any) { t.Error("a dead letter is no answer") }
		}
		result := h.askInBackground(ctx, to.pid, 1, late)
		q := next(t, to.questions)
		cancel(errEnough)
		next(t, result)
		h.system.Root.Send(q.Sender, reply)
	}
	if n := registered(h.system, "port"); n != 0 {
		t.Errorf("%d ports are left", n)
	}
}

// An actor that answers twice does not answer the next question of the port.
func TestPortSecondAnswerIsIgnored(t *testing.T) {
	h := newHouse(t)
	to := hand(t, h)
	first := h.askInBackground(t.Context(), to.pid, 1, nil)
	q1 := next(t, to.questions)
	h.system.Root.Send(q1.Sender, 1)
	h.system.Root.Send(q1.Sender, "while the port is idle or about to be")
	next(t, first)
	second := h.askInBackground(t.Context(), to.pid, 2, nil)
	q2 := next(t, to.questions)
	if q1.Sender.Id != q2.Sender.Id {
		t.Fatal("the port was not used again: this test shows nothing")
	}
	h.system.Root.Send(q1.Sender, "while the next question is open")
	h.system.Root.Send(q1.Sender, &actor.DeadLetterResponse{})
	h.system.Root.Send(h.system.NewLocalPID(q1.Sender.Id), "without a number")
	h.system.Root.Send(q2.Sender, 2)
	if got := next(t, second); got != (answer{2, nil}) {
		t.Errorf("got %v", got)
	}
}

func TestPortIgnoresSystemMessages(t *testing.T) {
	h := newHouse(t)
	to := hand(t, h)
	result := h.askInBackground(t.Context(), to.pid, 1, nil)
	q := next(t, to.questions)
	p, _ := h.system.ProcessRegistry.Get(q.Sender)
	for _, message := range []any{&actor.Watch{Watcher: to.pid}, &actor.Terminated{Who: to.pid}, &actor.Stop{}} {
		p.SendSystemMessage(q.Sender, message)
	}
	h.system.Root.Stop(q.Sender)
	h.system.Root.Send(q.Sender, "done")
	if got := next(t, result); got != (answer{"done", nil}) {
		t.Errorf("got %v", got)
	}
}

func TestPortsClose(t *testing.T) {
	h := newHouse(t)
	to := hand(t, h)
	a, b := h.askInBackground(t.Context(), to.pid, 1, nil), h.askInBackground(t.Context(), to.pid, 2, nil)
	q1, q2 := next(t, to.questions), next(t, to.questions)
	h.system.Root.Send(q1.Sender, "early")
	early, later := a, b
	if q1.Message.(*query).number == 2 {
		early, later = b, a
	}
	if got := next(t, early); got != (answer{"early", nil}) {
		t.Errorf("got %v", got)
	}
	h.ports.Close()
	h.ports.Close()
	if n := registered(h.system, "port"); n != 1 {
		t.Errorf("got %d ports after Close, want the one in use", n)
	}
	h.system.Root.Send(q2.Sender, "later")
	if got := next(t, later); got != (answer{"later", nil}) {
		t.Errorf("got %v", got)
	}
	if n := registered(h.system, "port"); n != 0 {
		t.Errorf("got %d ports, want none", n)
	}
	if _, err := h.ports.Ask(t.Context(), to.pid, &query{}, nil); !errors.Is(err, messages.ErrStopped) {
		t.Errorf("got %v", err)
	}
}

func TestPortAskAwaitingRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		m := h.mailbox(1)
		gate := make(chan struct{})
		pid := h.spawn(t, m, receive(func(c actor.Context) {
			if q, ok := c.Message().(*query); ok {
				<-gate
				c.Respond(q.number)
			}
		}))
		ask := func(ctx context.Context, number int) <-chan answer {
			result := make(chan answer, 1)
			go func() {
				reply, err := h.ports.AskBy(m.AwaitPost)(ctx, pid, &query{number}, func(any) { t.Error("late") })
				result <- answer{reply, err}
			}()
			synctest.Wait()
			return result
		}
		inHand, inLane := ask(t.Context(), 1), ask(t.Context(), 2)
		ctx, cancel := context.WithCancelCause(t.Context())
		waiting, givenUp := ask(t.Context(), 3), ask(ctx, 4)
		cancel(errEnough)
		if got := <-givenUp; !errors.Is(got.err, errEnough) {
			t.Errorf("got %v, want the cause", got)
		}
		if got := h.ask(t, pid, 5); got != (refused{5, base.LaneFull}) {
			t.Errorf("got %v", got)
		}
		close(gate)
		for number, result := range []<-chan answer{inHand, inLane, waiting} {
			if got := <-result; got != (answer{number + 1, nil}) {
				t.Errorf("got %v, want %d", got, number+1)
			}
		}
		if n := registered(h.system, "port"); n != 4 {
			t.Errorf("got %d ports, want the 4 that were in use at once", n)
		}
	})
}

// Each question has exactly one outcome, its own: Ask returns the answer, or late
// gets it. Contexts end while the answers arrive, and the actor answers twice.
func TestPortStressCancelRace(t *testing.T) {
	h := newHouse(t)
	const askers, each = 16, 2_000
	// One question is answered for certain when nobody waits any more, whatever the machine does.
	const held = each + 1
	taken, gaveUp := make(chan struct{}), make(chan struct{})
	pid := h.spawn(t, h.mailbox(1024), receive(func(c actor.Context) {
		if q, ok := c.Message().(*query); ok {
			if q.number == held {
				close(taken)
				<-gaveUp
			}
			c.Respond(q.number)
			if q.number%5 == 0 && c.Sender() != nil {
				if p, ok := h.system.ProcessRegistry.Get(c.Sender()); ok { // no flood of dead letters
					p.SendUserMessage(c.Sender(), -1)
				}
			}
		}
	}))
	var answers [askers * each]atomic.Int32
	var timely, late atomic.Int64
	var all sync.WaitGroup
	for a := range askers {
		all.Go(func() {
			for n := range each {
				number := a*each + n
				ctx, cancel := context.WithCancel(context.Background())
				switch chance := rand.IntN(4); {
				case number == held:
					all.Go(func() {
						<-taken
						cancel()
					})
				case chance == 0 || n == 0: // it is answered in time
				case chance == 1:
					cancel()
				default:
					all.Go(cancel)
				}
				reply, err := h.ports.Ask(ctx, pid, &query{number}, func(reply any) {
					late.Add(1)
					if reply != number {
						t.Errorf("question %d: late got %v", number, reply)
					}
					answers[number].Add(1)
				})
				if number == held {
					close(gaveUp)
				}
				if err == nil {
					timely.Add(1)
					if reply != number {
						t.Errorf("question %d: got %v", number, reply)
					}
					answers[number].Add(1)
				}
				cancel()
			}
		})
	}
	all.Wait()
	h.ask(t, pid, 1) // all earlier questions are answered
	for number := range answers {
		if n := answers[number].Load(); n > 1 {
			t.Errorf("question %d: %d answers", number, n)
		}
	}
	if n := registered(h.system, "port"); n > askers+1 {
		t.Errorf("got %d ports for %d askers", n, askers)
	}
	if late.Load() == 0 || timely.Load() == 0 {
		t.Error("the race did not take place")
	}
	t.Logf("%d in time, %d late", timely.Load(), late.Load())
}
