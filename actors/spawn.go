package actors

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
)

// parent is what the leaves of an actor have of it.
type parent struct {
	key         Key
	incarnation uint64
	dispatcher  actor.Dispatcher
	system      *actor.ActorSystem
	observer    Observer
}

// spawn starts a leaf, the nth one of its parent's incarnation. Its queue is bounded by the
// protocol that it has with its parent.
func (p *parent) spawn(ctx actor.Context, name string, n int, produce actor.Producer) *actor.PID {
	key := Key{Group: name, ID: p.key.ID}
	mailbox := NewMailbox(MailboxConfig{Key: key, Requests: 1, System: p.system, Observer: p.observer})
	props := actor.PropsFromProducer(produce,
		actor.WithDispatcher(p.dispatcher),
		actor.WithMailbox(func() actor.Mailbox { return mailbox }))
	pid, err := ctx.SpawnNamed(observeSends(props, mailbox), fmt.Sprintf("%s-%d-%d", name, p.incarnation, n))
	if err != nil {
		// The name holds both numbers: nobody else has it.
		panic(err)
	}
	return addressOf(pid)
}

// addressOf returns a copy of an address. The actor system keeps the address of a child that has ended
// with its parent for longer, and an address that was sent to keeps all of its actor.
func addressOf(pid *actor.PID) *actor.PID { return actor.NewPID(pid.Address, pid.Id) }

// logPanic, deferred by an actor that ends, keeps a panic from its supervisor, which would
// wait for ever.
func logPanic(logger *zap.Logger, key Key) {
	if r := recover(); r != nil {
		logger.Error("panic while ending", zap.Stringer("actor", key), zap.Any("reason", r))
	}
}
