package base_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors/base"
)

// BenchmarkMailboxPostTake posts a message, wakes the actor, takes the message and
// finds the mailbox empty, on one goroutine.
func BenchmarkMailboxPostTake(b *testing.B) {
	question := &actor.MessageEnvelope{Message: &query{}}
	run := func(b *testing.B, burst int) {
		m := base.NewMailbox(base.MailboxConfig{Requests: burst, IsRequest: isQuery})
		d := &manualDispatcher{}
		m.RegisterHandlers(idler{}, d)
		m.Start()
		b.ReportAllocs()
		for n := 1; b.Loop(); n++ {
			m.PostUserMessage(question)
			if n%burst == 0 {
				d.run()
			}
		}
	}
	b.Run("one by one", func(b *testing.B) { run(b, 1) })
	b.Run("bursts of 64", func(b *testing.B) { run(b, 64) })
}

// idler stands for an actor without work.
type idler struct{}

func (idler) InvokeSystemMessage(any)  {}
func (idler) InvokeUserMessage(any)    {}
func (idler) EscalateFailure(_, _ any) {}
