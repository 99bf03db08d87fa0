package base_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/actors/base"
	"github.com/partita-go/partita/ids"
)

// answerInterrupted answers queries and no other messages.
func answerInterrupted(message any) (any, bool) {
	q, ok := message.(*query)
	if !ok {
		return nil, false
	}
	return fmt.Sprintf("interrupted %d", q.number), true
}

// restart is what OnRestart is told.
type restart struct {
	id       string
	reason   any
	failures int
	delay    time.Duration
}

// ward is a house whose actors have our guardian, with a clock that stands still.
type ward struct {
	*house
	clock    *actorstest.FakeClock
	restarts chan restart
	guardian actor.SupervisorStrategy
}

func newWard(t *testing.T) *ward {
	t.Helper()
	w := &ward{house: newHouse(t), clock: actorstest.NewFakeClock(time.Unix(1000, 0)), restarts: make(chan restart, 1000)}
	w.guardian = base.NewGuardian(base.RestartPolicy{
		MinDelay: time.Second, MaxDelay: 10 * time.Second, QuietAfter: time.Minute, Clock: w.clock,
		Jitter: func() float64 { return 0 },
		OnRestart: func(child *actor.PID, reason any, _ ids.TraceID, failures int, delay time.Duration) {
			w.restarts <- restart{child.Id, reason, failures, delay}
		},
	}, answerInterrupted)
	return w
}

// patient is an actor with two children, that does as it is told.
type patient struct {
	incarnation int64
	children    []*actor.PID
}

// count has what happened to the patients of a test.
type count struct {
	produced, restarting, stopped, leaves, strange atomic.Int64
	// on is called first with each message; it may be nil.
	on func(p *patient, message any)
	// leaf is called with each message to a child.
	leaf func(message any)
}

func (n *count) produce(m *base.Mailbox) actor.Producer {
	return func() actor.Actor {
		p := &patient{incarnation: n.produced.Add(1)}
		return actor.ReceiveFunc(func(c actor.Context) { n.receive(p, m, c) })
	}
}

func (n *count) receive(p *patient, m *base.Mailbox, c actor.Context) {
	if n.on != nil {
		n.on(p, c.Message())
	}
	switch q := c.Message().(type) {
	case *actor.Started:
		for range 2 {
			p.children = append(p.children, c.Spawn(actor.PropsFromFunc(n.receiveLeaf)))
		}
	case *actor.Restarting:
		n.restarting.Add(1)
	case *actor.Stopped:
		n.stopped.Add(1)
		m.Close()
	case *note: // negative: to the leaves
		if q.number < 0 {
			for _, child := range p.children {
				c.Request(child, &query{q.number})
			}
		}
	case *query:
		if q.number < 0 {
			panic(fmt.Sprintf("planted %d", q.number))
		}
		c.Respond(fmt.Sprintf("%d by incarnation %d", q.number, p.incarnation))
	case string:
		n.strange.Add(1)
	}
}

func (n *count) receiveLeaf(c actor.Context) {
	if _, ok := c.Message().(*actor.Started); ok {
		n.leaves.Add(1)
	}
	if n.leaf != nil {
		n.leaf(c.Message())
	}
	if isQuery(c.Message()) {
		panic("planted in a leaf")
	}
}

func (w *ward) patient(t *testing.T, n *count) (*base.Mailbox, *actor.PID) {
	t.Helper()
	m := w.mailbox(8)
	pid := w.spawn(t, m, n.produce(m), actor.WithGuardian(w.guardian), actor.WithSupervisor(base.EscalateToParent()))
	return m, pid
}

func (w *ward) background(pid *actor.PID, number int) <-chan answer {
	return w.askInBackground(context.Background(), pid, number, nil)
}

func TestGuardianRestartsAfterADelayAndKeepsTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWard(t), &count{}
		m, pid := w.patient(t, n)
		if got := w.ask(t, pid, 1); got != "1 by incarnation 1" {
			t.Errorf("got %v", got)
		}
		if got := w.ask(t, pid, -2); got != "interrupted -2" {
			t.Errorf("got %v", got)
		}
		if got := <-w.restarts; got != (restart{pid.Id, "planted -2", 1, time.Second}) {
			t.Errorf("got %v", got)
		}
		waiting := w.background(pid, 3)
		w.clock.Advance(time.Second - 1)
		synctest.Wait()
		if m.Requests() != 1 || n.restarting.Load() != 0 {
			t.Error("restarted before the delay has passed")
		}
		w.clock.Advance(1)
		if got := <-waiting; got != (answer{"3 by incarnation 2", nil}) {
			t.Errorf("got %v", got)
		}
		synctest.Wait()
		if n.produced.Load() != 2 || n.restarting.Load() != 1 || n.leaves.Load() != 4 {
			t.Errorf("got %d incarnations, %d restarts, %d leaves", n.produced.Load(), n.restarting.Load(), n.leaves.Load())
		}
	})
}

// However many leaves panic at once, the parent is restarted once, with fresh ones.
func TestEscalateToParentRestartsTheParentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWard(t), &count{}
		_, pid := w.patient(t, n)
		w.system.Root.Send(pid, &note{-1})
		synctest.Wait()
		waiting := w.background(pid, 1)
		synctest.Wait()
		w.clock.Advance(time.Hour)
		if got := <-waiting; got != (answer{"1 by incarnation 2", nil}) {
			t.Errorf("got %v", got)
		}
		w.clock.Advance(time.Hour)
		synctest.Wait()
		if len(w.restarts) != 1 || (<-w.restarts).reason != "planted in a leaf" {
			t.Error("want one failure, for the reason of the leaf")
		}
		if n.strange.Load() != 0 {
			t.Error("the parent was answered for the leaf")
		}
		if n.produced.Load() != 2 || n.restarting.Load() != 1 || n.leaves.Load() != 4 {
			t.Errorf("got %d incarnations, %d restarts, %d leaves", n.produced.Load(), n.restarting.Load(), n.leaves.Load())
		}
	})
}

// The same without waiting, on a real clock, again and again.
func TestEscalateToParentStress(t *testing.T) {
	h, n := newHouse(t), &count{}
	guardian := base.NewGuardian(base.RestartPolicy{MinDelay: 1, MaxDelay: 1}, answerInterrupted)
	m := h.mailbox(8)
	pid := h.spawn(t, m, n.produce(m), actor.WithGuardian(guardian), actor.WithSupervisor(base.EscalateToParent()))
	const rounds = 200
	for round := range rounds {
		h.system.Root.Send(pid, &note{-1})
		for { // the answer is that of the incarnation which fails, or of the next
			if got := h.ask(t, pid, 1); got == fmt.Sprintf("1 by incarnation %d", round+2) {
				break
			}
		}
	}
	h.stop(t, pid)
	if got := n.produced.Load(); got != rounds+1 {
		t.Errorf("got %d incarnations, want %d", got, rounds+1)
	}
}

func TestGuardianLateRestartOfAStoppedActor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWard(t), &count{}
		_, pid := w.patient(t, n)
		w.ask(t, pid, -1)
		backlog := w.background(pid, 2)
		synctest.Wait()
		w.stop(t, pid)
		if got := <-backlog; got != (answer{refused{2, base.Closed}, nil}) {
			t.Errorf("got %v", got)
		}
		w.clock.Advance(time.Hour)
		synctest.Wait()
		if n.produced.Load() != 1 || n.restarting.Load() != 0 || n.stopped.Load() != 1 {
			t.Error("a stopped actor was restarted")
		}
		<-time.After(time.Second) // in the bubble's time: the throttle of dead letters ends
	})
}

// The restart comes while the actor waits for its children to end.
func TestGuardianLateRestartOfAStoppingActor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		w, n := newWard(t), &count{}
		n.leaf = func(message any) {
			if _, ok := message.(*actor.Stopping); ok {
				<-gate
			}
		}
		_, pid := w.patient(t, n)
		w.ask(t, pid, -1)
		watch(w.watcher, w.system, pid)
		w.system.Root.Stop(pid)
		synctest.Wait()
		w.clock.Advance(time.Hour)
		synctest.Wait()
		close(gate)
		awaitTerminated(t, w.watcher, pid)
		if n.produced.Load() != 1 || n.restarting.Load() != 0 || n.stopped.Load() != 1 {
			t.Errorf("got %d incarnations, stopped %d times", n.produced.Load(), n.stopped.Load())
		}
	})
}

// A late restart that meets another actor of the same name leaves it alone.
func TestGuardianLateRestartMeetsANamesake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWard(t), &count{}
		spawn := func() *actor.PID {
			m := w.mailbox(8)
			pid, err := w.system.Root.SpawnNamed(actor.PropsFromProducer(n.produce(m), actor.WithGuardian(w.guardian),
				actor.WithDispatcher(w.dispatcher), actor.WithMailbox(func() actor.Mailbox { return m })), "name")
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
		first := spawn()
		w.ask(t, first, -1)
		w.stop(t, first)
		second := spawn()
		w.clock.Advance(time.Hour)
		if got := w.ask(t, second, 1); got != "1 by incarnation 2" {
			t.Errorf("got %v", got)
		}
		w.stop(t, second)
	})
}

// Whatever panics in the course of a restart, the next one comes.
func TestGuardianPanicsDuringTheRestart(t *testing.T) {
	for name, fails := range map[string]func(p *patient, message any) bool{
		"Started": func(p *patient, message any) bool {
			_, ok := message.(*actor.Started)
			return ok && p.incarnation < 4
		},
		"Restarting": func() func(p *patient, message any) bool {
			times := 0
			return func(_ *patient, message any) bool {
				_, ok := message.(*actor.Restarting)
				if ok {
					times++
				}
				return ok && times < 3
			}
		}(),
		"Terminated": func(p *patient, message any) bool {
			_, ok := message.(*actor.Terminated)
			return ok && p.incarnation == 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, n := newWard(t), &count{}
				n.on = func(p *patient, message any) {
					if fails(p, message) {
						panic("planted")
					}
				}
				_, pid := w.patient(t, n)
				waiting := w.background(pid, -1)
				synctest.Wait()
				last := w.background(pid, 2)
				for range 10 {
					w.clock.Advance(time.Minute)
					synctest.Wait()
				}
				<-waiting
				got := <-last
				t.Logf("%v after %d failures", got, len(w.restarts))
				if got.err != nil || len(w.restarts) < 2 {
					t.Error("want an answer after at least two failures")
				}
			})
		})
	}
}

func TestGuardianSurvivesItsCallbacks(t *testing.T) {
	h := newHouse(t)
	guardian := base.NewGuardian(base.RestartPolicy{
		MinDelay: 1, OnRestart: func(*actor.PID, any, ids.TraceID, int, time.Duration) { panic("planted") },
	}, func(any) (any, bool) { panic("planted") })
	n, m := &count{}, h.mailbox(8)
	pid := h.spawn(t, m, n.produce(m), actor.WithGuardian(guardian))
	h.system.Root.Send(pid, &query{-1})
	if got := h.ask(t, pid, 2); got != "2 by incarnation 2" {
		t.Errorf("got %v", got)
	}
}

func TestGuardianDelaysGrowAndAreForgotten(t *testing.T) {
	w := newWard(t)
	child := w.system.NewLocalPID("child")
	fail := func() restart {
		w.guardian.HandleFailure(w.system, nobody{}, child, nil, errEnough, nil)
		got := <-w.restarts
		w.clock.Advance(got.delay)
		return got
	}
	for i, want := range []float64{1, 2, 4, 5, 5, 5} {
		if got := fail(); got.delay.Seconds() != want || got.failures != i+1 || !errors.Is(got.reason.(error), errEnough) {
			t.Errorf("failure %d: got %+v, want a delay of %v s", i+1, got, want)
		}
	}
	w.clock.Advance(time.Minute)
	if got := fail(); got.failures != 7 {
		t.Errorf("got %+v, want no forgetting before the quiet time is over", got)
	}
	w.clock.Advance(time.Minute + 1)
	if got := fail(); got.failures != 1 || got.delay != time.Second {
		t.Errorf("got %+v, want a new beginning", got)
	}
	if w.clock.Timers() != 0 {
		t.Errorf("%d timers are left", w.clock.Timers())
	}
}

func TestGuardianDelayIsJitteredWithinItsBounds(t *testing.T) {
	system := newSystem()
	child := system.NewLocalPID("child")
	most := func() float64 { return 0.999999 }
	least := func() float64 { return 0 }
	for _, bounds := range [][2]time.Duration{{1, 7000}, {3000, 4000}, {5000, 5000}, {6000, 1}} {
		for _, jitter := range []func() float64{nil, least, most} {
			var delays []time.Duration
			policy := base.RestartPolicy{
				MinDelay: bounds[0], MaxDelay: bounds[1], Jitter: jitter, Clock: actorstest.NewFakeClock(time.Now()),
				OnRestart: func(_ *actor.PID, _ any, _ ids.TraceID, _ int, delay time.Duration) { delays = append(delays, delay) },
			}
			g := base.NewGuardian(policy, nil)
			for range 100 {
				g.HandleFailure(system, nobody{}, child, nil, "", nil)
			}
			low, high := slices.Min(delays), slices.Max(delays)
			if low < bounds[0] || high > max(bounds[0], bounds[1]) {
				t.Errorf("bounds %v: got delays from %d to %d", bounds, low, high)
			}
			if jitter != nil && !slices.IsSorted(delays) {
				t.Errorf("bounds %v: the delays do not grow: %v", bounds, delays)
			}
			// Half of the last ones are the lower bound where that is near the upper one.
			if last := delays[50:]; jitter == nil && bounds[0] < bounds[1] && slices.Min(last) == slices.Max(last) {
				t.Errorf("bounds %v: no jitter", bounds)
			}
		}
	}
}

// nobody is a supervisor of no actor.
type nobody struct{}

func (nobody) Children() []*actor.PID        { return nil }
func (nobody) EscalateFailure(_, _ any)      { panic("escalated") }
func (nobody) RestartChildren(...*actor.PID) {}
func (nobody) StopChildren(...*actor.PID)    {}
func (nobody) ResumeChildren(...*actor.PID)  {}
