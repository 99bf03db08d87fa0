package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// AskBy returns what does what Ask does, but posts in another way.
func (p *Ports) AskBy(post func(context.Context, any) error) func(context.Context, *actor.PID, any, func(any)) (any, error) {
	return func(ctx context.Context, _ *actor.PID, message any, late func(any)) (any, error) {
		return p.ask(ctx, message, late, func(e *actor.MessageEnvelope) error { return post(ctx, e) })
	}
}

// Borrowed is a request that is copied by a call of it.
type Borrowed func()

func (b Borrowed) copyBorrowed() { b() }

// AwaitPostBorrowed is AwaitPost for what is copied when it has a place.
func (m *Mailbox) AwaitPostBorrowed(ctx context.Context, message any, b Borrowed) error {
	return m.awaitPost(ctx, message, b)
}

// PostBorrowed is PostAndRun for what is copied when it has a place.
func (m *Mailbox) PostBorrowed(message any, b Borrowed) { m.postAndRun(message, b) }

// Queued returns how many requests are in the lane of a partition, or wait for
// room in it.
func (p *Partition) Queued() int {
	m := p.mailbox
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests.length + m.waiters.Len()
}

// Lapsed reports whether the transaction has seen the end of its context.
func (t *Transaction) Lapsed() bool { return t.lapsed.Load() }

// StopLimit is how long Stop waits from now on.
func (p *Partition) StopLimit() time.Duration { return p.stopLimit() }
