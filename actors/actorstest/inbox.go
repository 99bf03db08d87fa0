package actorstest

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// Inbox is a process that is no actor and keeps what it is sent, up to 10,000 messages of each kind. It is safe for
// concurrent use.
type Inbox struct {
	PID          *actor.PID
	User, System chan any
}

// NewInbox registers an inbox, which is there until the test ends.
func NewInbox(t testing.TB, system *actor.ActorSystem) *Inbox {
	t.Helper()
	i := &Inbox{User: make(chan any, 10_000), System: make(chan any, 10_000)}
	i.PID, _ = system.ProcessRegistry.Add(i, "inbox"+system.ProcessRegistry.NextId())
	t.Cleanup(func() { system.ProcessRegistry.Remove(i.PID) })
	return i
}

// SendUserMessage implements [actor.Process].
func (i *Inbox) SendUserMessage(_ *actor.PID, message any) {
	i.User <- actor.UnwrapEnvelopeMessage(message)
}

// SendSystemMessage implements [actor.Process].
func (i *Inbox) SendSystemMessage(_ *actor.PID, message any) { i.System <- message }

// Stop implements [actor.Process].
func (i *Inbox) Stop(*actor.PID) {}

// From returns a message with the inbox as its sender.
func (i *Inbox) From(message any) *actor.MessageEnvelope {
	return &actor.MessageEnvelope{Message: message, Sender: i.PID}
}

// Received returns what has come until now.
func (i *Inbox) Received() []any {
	var all []any
	for len(i.User) > 0 {
		all = append(all, <-i.User)
	}
	return all
}
