package base

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
)

// AskBy returns what does what Ask does, but posts in another way.
func (p *Ports) AskBy(post func(context.Context, any) error) func(context.Context, *actor.PID, any, func(any)) (any, error) {
	return func(ctx context.Context, _ *actor.PID, message any, late func(any)) (any, error) {
		return p.AskThrough(ctx, message, late, func(e *actor.MessageEnvelope) error { return post(ctx, e) })
	}
}

// Copying is a request that is copied by a call of it.
type Copying func()

// CopyBorrowed implements [Borrowed].
func (c Copying) CopyBorrowed() { c() }
