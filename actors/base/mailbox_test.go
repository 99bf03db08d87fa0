package base_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/actors/base"
)

// manualDispatcher does the work when it is told to, on the caller's goroutine.
type manualDispatcher struct {
	mu   sync.Mutex
	work func()
}

func (d *manualDispatcher) Schedule(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.work != nil {
		panic("scheduled twice")
	}
	d.work = f
}
func (d *manualDispatcher) Throughput() int { return 300 }

func (d *manualDispatcher) run() {
	for work := d.next(); work != nil; work = d.next() {
		work()
	}
}

func (d *manualDispatcher) next() (work func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	work, d.work = d.work, nil
	return work
}

// bench is a mailbox on the work bench: no actor, no goroutine.
type bench struct {
	*base.Mailbox
	manualDispatcher

	sender *actorstest.Inbox
	// taken has what the actor got: texts for system messages, numbers of queries,
	// negative ones of notes.
	taken []any
	// failures has the messages that were in the actor's hands when it panicked.
	failures []any
	// on is called with each message that is not a system message.
	on func(message any)
}

func newBench(t *testing.T, system *actor.ActorSystem, requests int, observer base.Observer) *bench {
	t.Helper()
	return newBenchOf(t, base.MailboxConfig{System: system, Requests: requests, Observer: observer})
}

// newBenchOf is newBench with more settings.
func newBenchOf(t *testing.T, c base.MailboxConfig) *bench {
	t.Helper()
	b := &bench{sender: actorstest.NewInbox(t, c.System)}
	c.Key, c.IsRequest, c.Refuse = base.Key{Group: "bench", ID: "1"}, isQuery, refuse
	b.Mailbox = base.NewMailbox(c)
	b.RegisterHandlers(b, &b.manualDispatcher)
	return b
}

func (b *bench) InvokeSystemMessage(message any) {
	b.taken = append(b.taken, fmt.Sprintf("%T", message))
}

func (b *bench) InvokeUserMessage(message any) {
	message = actor.UnwrapEnvelopeMessage(message)
	switch m := message.(type) {
	case *query:
		b.taken = append(b.taken, m.number)
	case *note:
		b.taken = append(b.taken, -m.number)
	default:
		b.taken = append(b.taken, m)
	}
	if b.on != nil {
		b.on(message)
	}
}

func (b *bench) EscalateFailure(_, message any) {
	b.failures = append(b.failures, message)
	b.PostSystemMessage(&actor.SuspendMailbox{})
}

// query posts queries.
func (b *bench) query(numbers ...int) {
	for _, n := range numbers {
		b.PostUserMessage(b.sender.From(&query{n}))
	}
}

// expect does the work and checks what the actor got since the last call.
func (b *bench) expect(t *testing.T, want ...any) {
	t.Helper()
	b.run()
	if !slices.Equal(b.taken, want) {
		t.Errorf("the actor got %v, want %v", b.taken, want)
	}
	b.taken = nil
}

// expectAnswers checks what the sender got since the last call.
func (b *bench) expectAnswers(t *testing.T, want ...any) {
	t.Helper()
	if got := b.sender.Received(); !slices.Equal(got, want) {
		t.Errorf("the sender got %v, want %v", got, want)
	}
}

func TestMailboxTakesNothingBeforeStart(t *testing.T) {
	b := newBench(t, newSystem(), 4, nil)
	b.query(1)
	b.PostUserMessage(&note{2})
	b.PostSystemMessage(&actor.Started{})
	b.expect(t)
	b.Start()
	b.expect(t, "*actor.Started", -2, 1)
}

func TestMailboxStartOfAnEmptyOneWakesNobody(t *testing.T) {
	b := newBench(t, newSystem(), 4, nil)
	b.Start()
	if b.work != nil {
		t.Error("woken")
	}
}

func TestMailboxTakesLanesByPriority(t *testing.T) {
	b := newBench(t, newSystem(), 4, nil)
	b.Start()
	b.query(1, 2)
	b.PostUserMessage(&note{3})
	poison := &actor.PoisonPill{}
	b.PostUserMessage(poison)
	b.PostSystemMessage(&actor.Watch{})
	b.on = func(message any) {
		if q, ok := message.(*query); ok && q.number == 1 {
			b.PostUserMessage(&note{4})
			b.PostSystemMessage(&actor.Unwatch{})
		}
	}
	if n := b.UserMessageCount(); n != 4 {
		t.Errorf("got %d user messages", n)
	}
	b.expect(t, "*actor.Watch", -3, poison, 1, "*actor.Unwatch", -4, 2)
}

func TestMailboxTreatsABatchAsOneMessage(t *testing.T) {
	b := newBench(t, newSystem(), 1, nil)
	b.Start()
	b.PostUserMessage(batch{})
	b.expect(t, batch{})
}

type batch struct{}

func (batch) GetMessages() []any { return []any{1, 2} }

func TestMailboxFullLaneRefusesExactly(t *testing.T) {
	system := newSystem()
	for _, bound := range []int{1, 2, 3, 16, 17} {
		b := newBench(t, system, bound, nil)
		b.Start()
		for n := range bound {
			b.query(n)
		}
		b.expectAnswers(t)
		b.query(100)
		b.expectAnswers(t, refused{100, base.LaneFull})
		b.PostUserMessage(&query{101}) // nobody to tell
		b.PostUserMessage(b.sender.From(&note{102}))
		if n := b.Requests(); n != bound {
			t.Errorf("got %d requests, want %d", n, bound)
		}
		want := []any{-102}
		for n := range bound {
			want = append(want, n)
		}
		b.expect(t, want...)
		b.expectAnswers(t)
	}
}

func TestMailboxBoundBelowOneIsOne(t *testing.T) {
	b := newBench(t, newSystem(), 0, nil)
	b.Start()
	b.query(1, 2)
	b.expectAnswers(t, refused{2, base.LaneFull})
	b.expect(t, 1)
}

func TestMailboxWithoutRequestsRefusesNothing(t *testing.T) {
	m := base.NewMailbox(base.MailboxConfig{})
	for range 100 {
		m.PostUserMessage(&query{})
	}
	if n := m.UserMessageCount(); n != 100 {
		t.Errorf("got %d messages", n)
	}
}

func TestMailboxHoldLeavesRequestsAlone(t *testing.T) {
	b := newBench(t, newSystem(), 3, nil)
	b.Start()
	b.on = func(message any) {
		switch m := message.(type) {
		case *query:
			b.Hold()
		case *note:
			if m.number == 9 {
				b.Release()
			}
		}
	}
	b.query(1, 2)
	b.expect(t, 1)
	b.query(3)
	if b.work != nil {
		t.Error("a request woke an actor that takes none")
	}
	b.query(4, 5)
	b.expectAnswers(t, refused{5, base.LaneFull})
	b.PostUserMessage(&note{8})
	b.expect(t, -8)
	b.PostSystemMessage(&actor.Watch{})
	b.expect(t, "*actor.Watch")
	b.PostUserMessage(&note{9})
	b.expect(t, -9, 2)
	b.PostUserMessage(&note{9})
	b.expect(t, -9, 3)
	b.Release() // also from elsewhere
	b.expect(t, 4)
}

func TestMailboxSuspendedTakesSystemMessagesOnly(t *testing.T) {
	b := newBench(t, newSystem(), 2, nil)
	b.Start()
	b.PostSystemMessage(&actor.SuspendMailbox{})
	b.expect(t)
	b.query(1)
	b.PostUserMessage(&note{2})
	b.Release()
	if b.work != nil {
		t.Error("woken while suspended")
	}
	b.PostSystemMessage(&actor.Watch{})
	b.expect(t, "*actor.Watch")
	b.PostSystemMessage(&actor.ResumeMailbox{})
	b.expect(t, -2, 1)
}

func TestMailboxEscalatesAPanicWithItsEnvelope(t *testing.T) {
	b := newBench(t, newSystem(), 4, nil)
	b.Start()
	b.on = func(message any) {
		if q, ok := message.(*query); ok && q.number == 1 {
			panic("planted")
		}
	}
	b.query(1, 2)
	b.expect(t, 1)
	if len(b.failures) != 1 || actor.UnwrapEnvelopeSender(b.failures[0]) != b.sender.PID {
		t.Errorf("got failures %v", b.failures)
	}
	b.PostSystemMessage(&actor.Restart{})
	b.expect(t, "*actor.Restart")
	b.PostSystemMessage(&actor.ResumeMailbox{})
	b.expect(t, 2)
}

func TestMailboxCloseAnswersTheBacklog(t *testing.T) {
	b := newBench(t, newSystem(), 4, nil)
	b.Start()
	b.on = func(message any) {
		if q, ok := message.(*query); ok && q.number == 1 {
			b.PostUserMessage(b.sender.From(&note{5}))
			b.PostUserMessage(&note{6})
			b.PostUserMessage(b.sender.From(&note{7}))
			b.PostUserMessage(&note{8})
			b.Close()
		}
	}
	b.query(1, 2, 3)
	b.expect(t, 1, -6, -8)
	b.expectAnswers(t, refused{2, base.Closed}, refused{3, base.Closed}, refused{5, base.Closed}, refused{7, base.Closed})

	b.Close()
	b.query(9)
	b.PostUserMessage(&query{10})
	b.PostUserMessage(b.sender.From(&note{11}))
	b.PostUserMessage(&note{12})
	b.PostSystemMessage(&actor.Watch{})
	b.expect(t, "*actor.Watch", -12)
	b.expectAnswers(t, refused{9, base.Closed}, refused{11, base.Closed})
}

func TestMailboxNoAnswerWithoutRefuse(t *testing.T) {
	system := newSystem()
	sender := actorstest.NewInbox(t, system)
	for _, refuse := range []func(any, base.RefuseReason) any{nil, func(any, base.RefuseReason) any { return nil }} {
		m := base.NewMailbox(base.MailboxConfig{IsRequest: isQuery, Refuse: refuse, System: system})
		m.Close()
		m.PostUserMessage(sender.From(&query{}))
		if got := sender.Received(); got != nil {
			t.Errorf("got %v", got)
		}
	}
}

// A restart that comes late, or twice, must not bring a stopped actor back to
// life, nor restart one that has not failed.
func TestMailboxObeysARestartOnlyAfterAFailure(t *testing.T) {
	b := newBench(t, newSystem(), 4, nil)
	b.Start()
	b.PostSystemMessage(&actor.Restart{})
	b.expect(t)
	b.PostSystemMessage(&actor.SuspendMailbox{})
	b.PostSystemMessage(&actor.Restart{})
	b.PostSystemMessage(&actor.Restart{})
	b.expect(t, "*actor.Restart")
	b.PostSystemMessage(&actor.ResumeMailbox{})
	b.PostSystemMessage(&actor.Restart{})
	b.expect(t)
	b.PostSystemMessage(&actor.SuspendMailbox{})
	b.PostSystemMessage(&actor.Restart{})
	b.expect(t, "*actor.Restart")
}

func TestMailboxObeysNoRestartAfterAStop(t *testing.T) {
	b := newBench(t, newSystem(), 4, nil)
	b.Start()
	b.PostSystemMessage(&actor.SuspendMailbox{})
	b.PostSystemMessage(&actor.Stop{})
	b.PostSystemMessage(&actor.Restart{})
	b.expect(t, "*actor.Stop")
	b.PostSystemMessage(&actor.SuspendMailbox{}) // it panics while it stops
	b.PostSystemMessage(&actor.Restart{})
	b.PostSystemMessage(&actor.Terminated{})
	b.expect(t, "*actor.Terminated")
}

func TestMailboxDropsFailuresOfChildrenThatAreLost(t *testing.T) {
	b := newBench(t, newSystem(), 4, nil)
	b.Start()
	b.PostSystemMessage(&actor.Failure{})
	b.expect(t, "*actor.Failure")
	b.PostSystemMessage(&actor.Failure{}) // of a second child
	b.PostSystemMessage(&actor.SuspendMailbox{})
	b.PostSystemMessage(&actor.Restart{})
	b.PostSystemMessage(&actor.Failure{})
	b.expect(t, "*actor.Restart")
	b.PostSystemMessage(&actor.ResumeMailbox{})
	b.PostSystemMessage(&actor.Failure{})
	b.expect(t, "*actor.Failure")
}

// diary is an observer that writes everything down.
type diary struct{ entries []string }

func (d *diary) write(what string, key base.Key, message any) {
	if q, ok := message.(*query); ok {
		message = q.number
	}
	d.entries = append(d.entries, fmt.Sprintf("%s %s %v", what, key, message))
}

func (d *diary) Posted(key base.Key, message any)  { d.write("posted", key, message) }
func (d *diary) Taken(key base.Key, message any)   { d.write("taken", key, message) }
func (d *diary) Handled(key base.Key, message any) { d.write("handled", key, message) }

func TestMailboxTellsTheObserver(t *testing.T) {
	d := &diary{}
	b := newBench(t, newSystem(), 2, d)
	b.Start()
	b.on = func(message any) {
		if message.(*query).number == 1 {
			panic("planted")
		}
	}
	expect := func(want ...string) {
		t.Helper()
		b.run()
		for i := range want {
			want[i] = fmt.Sprintf(want[i], "bench/1")
		}
		if !slices.Equal(d.entries, want) {
			t.Errorf("got  %q\nwant %q", d.entries, want)
		}
		d.entries = nil
	}
	b.query(1)
	expect("posted %s 1", "taken %s 1", "handled %s 1", "posted %s &{}", "taken %s &{}", "handled %s &{}")
	b.query(2, 3, 4)
	expect("posted %s 2", "posted %s 3", "posted %s 4", "handled %s 4")
	if err := b.AwaitPost(endedContext(), b.sender.From(&query{5})); err == nil {
		t.Error("posted with a context that has ended")
	}
	expect("posted %s 5", "handled %s 5")
	b.Close()
	expect("handled %s 2", "handled %s 3")
}
