package actors

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// request is what goes into the request lane in these tests.
type request struct{ number int }

func isRequest(message any) bool {
	_, ok := message.(*request)
	return ok
}

// countingInvoker stands for an actor without work.
type countingInvoker struct{ user, system int }

func (i *countingInvoker) InvokeSystemMessage(any)  { i.system++ }
func (i *countingInvoker) InvokeUserMessage(any)    { i.user++ }
func (i *countingInvoker) EscalateFailure(_, _ any) {}

// laterDispatcher does the work when it is told to.
type laterDispatcher struct{ work []func() }

func (d *laterDispatcher) Schedule(f func()) { d.work = append(d.work, f) }
func (d *laterDispatcher) Throughput() int   { return throughput }

func (d *laterDispatcher) run() {
	for len(d.work) > 0 {
		next := d.work[0]
		d.work = d.work[1:]
		next()
	}
}

// BenchmarkMailboxPostTake posts a message, wakes the actor, takes the message and
// finds the mailbox empty, on one goroutine.
func BenchmarkMailboxPostTake(b *testing.B) {
	question := &actor.MessageEnvelope{Message: &request{}}
	run := func(b *testing.B, burst int) {
		m := NewMailbox(MailboxConfig{Requests: burst, IsRequest: isRequest})
		d := &manualDispatcher{}
		m.RegisterHandlers(&countingInvoker{}, d)
		m.Start()
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			m.PostUserMessage(question)
			if n%burst == burst-1 {
				d.work()
			}
		}
	}
	b.Run("one by one", func(b *testing.B) { run(b, 1) })
	b.Run("bursts of 64", func(b *testing.B) { run(b, 64) })
}

// manualDispatcher keeps the last function, which is always the same here.
type manualDispatcher struct{ work func() }

func (d *manualDispatcher) Schedule(f func()) { d.work = f }
func (d *manualDispatcher) Throughput() int   { return throughput }
