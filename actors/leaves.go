package actors

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/actors/base"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// PartitionStore is what a partition needs of a [storage.Store].
type PartitionStore interface {
	TakeEpoch(ctx context.Context, p messages.PartitionID) (storage.Register, error)
	Tail(ctx context.Context, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Numbering, error)
	Numbers(ctx context.Context, ws messages.WSID, periods ...messages.SequencePeriod) (storage.WorkspaceNumbers, error)
	Flush(ctx context.Context, f storage.Flush) error
	Append(ctx context.Context, b storage.Batch) error
	PLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error]
	WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error]
	Find(ctx context.Context, ws messages.WSID, id messages.DedupID) (messages.WLogOffset, error)
}

// leaf is what the leaves of a partition share. Leaves may block: they call the
// store, and answer the partition, which is their parent, by message.
type leaf struct {
	// ctx ends when the partition has stopped; a call that hangs even then is left
	// behind.
	ctx       context.Context
	partition messages.PartitionID
	store     PartitionStore
	submitter storage.Submitter // nil if the store is none
	// rest is what the store has left to do of the last batch that it did not take at once, until the appender has it.
	rest atomic.Pointer[rest]
	// permits and epochPermits bound how many partitions replay, and take an epoch, at the
	// same time.
	permits, epochPermits *Permits
	place                 *Place
	// unhandled is told about a message that a leaf does not know.
	unhandled func(message any)
}

// leafKind is a kind of leaf. A partition has at most one of each, made when there is work
// for it: the many partitions that have nothing to do have none.
type leafKind int

const (
	leafFlusher leafKind = iota
	leafActualizer
	leafReader
	leafAppender
	leafKinds
)

var leafNames = [leafKinds]string{"flusher", "actualizer", "reader", "appender"}

func (l *leaf) produce(k leafKind) actor.Actor {
	switch k {
	case leafFlusher:
		return does(l, l.flush)
	case leafActualizer:
		return &actualizer{leaf: l}
	case leafReader:
		return does(l, l.lookUp)
	case leafAppender, leafKinds:
	}
	return does(l, l.append)
}

// does returns an actor that does what messages of one kind ask for.
func does[M any](l *leaf, handle func(actor.Context, M)) actor.Actor {
	return actor.ReceiveFunc(func(ctx actor.Context) { receive(ctx, l, handle) })
}

func receive[M any](ctx actor.Context, l *leaf, handle func(actor.Context, M)) {
	switch m := ctx.Message().(type) {
	case M:
		handle(ctx, m)
	case actor.AutoReceiveMessage, actor.SystemMessage:
	default:
		l.unhandled(m)
	}
}

// flush writes sequence data and checkpoints.
func (l *leaf) flush(ctx actor.Context, m messages.FlusherMessage) {
	switch m := m.(type) {
	case *messages.WriteProjections:
		ctx.Send(ctx.Parent(), l.project(m))
	}
}

func (l *leaf) project(m *messages.WriteProjections) *messages.Written {
	err := l.store.Flush(l.ctx, storage.Flush{
		Partition:  l.partition,
		Epoch:      m.Epoch,
		Expected:   m.Expected,
		Checkpoint: m.Checkpoint,
		Numbers:    m.Numbers,
	})
	l.place.look()
	outcome, offset := outcomeOf(err)
	return &messages.Written{
		Generation: m.Generation, Checkpoint: m.Checkpoint, Outcome: outcome, Err: err, PLogOffset: offset,
	}
}

// lookUp loads numbers on a cache miss and looks for events.
func (l *leaf) lookUp(ctx actor.Context, m messages.ReaderMessage) {
	switch m := m.(type) {
	case *messages.LoadNumbers:
		numbers, err := l.store.Numbers(l.ctx, m.Workspace, m.Periods...)
		numbers.Workspace = m.Workspace
		ctx.Send(ctx.Parent(), &messages.Loaded{Generation: m.Generation, Load: m.Load, Numbers: numbers, Err: err, Trace: m.Trace})
	case *messages.FindEvent:
		present, err := l.find(m.Token)
		ctx.Send(ctx.Parent(), &messages.Found{Generation: m.Generation, Token: m.Token, Present: present, Err: err})
	case *messages.LoadEvents:
		events, err := l.load(m)
		ctx.Send(ctx.Parent(), &messages.EventsLoaded{Generation: m.Generation, Load: m.Load, Events: events, Err: err, Trace: m.Trace})
	}
}

// load reads the events of the append that had a deduplication id, none if there
// was no such append.
func (l *leaf) load(m *messages.LoadEvents) ([]messages.Event, error) {
	first := m.First
	if first == 0 {
		var err error
		if first, err = l.store.Find(l.ctx, m.Workspace, m.DedupID); err != nil || first == 0 {
			return nil, err
		}
	}
	var events []messages.Event
	for e, err := range l.store.WLog(l.ctx, m.Workspace, first) {
		if err != nil {
			return nil, err
		}
		events = append(events, e)
		if len(events) > int(events[0].Together) {
			break
		}
	}
	return events, nil
}

// find reports whether the event at the token's offset has the token's epoch.
func (l *leaf) find(t messages.Token) (bool, error) {
	for e, err := range l.store.PLog(l.ctx, l.partition, t.PLogOffset) {
		return err == nil && e.PLogOffset == t.PLogOffset && e.Epoch == t.Epoch, err
	}
	return false, nil
}

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
	pid, err := ctx.SpawnNamed(base.ObserveSends(props, mailbox), fmt.Sprintf("%s-%d-%d", name, p.incarnation, n))
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

// callHandler calls what users wrote and turns its panic into an error. It has a goroutine of
// its own: one that ends that, as a failed assertion does, must not take the actor with it.
func callHandler(logger *zap.Logger, key Key, trace ids.TraceID, users func() error) error {
	outcome := make(chan error, 1)
	go func() {
		err := ErrHandlerExit
		defer func() {
			if r := recover(); r != nil {
				logger.Error("handler panicked", zap.Stringer("actor", key), TraceField(trace), zap.Any("reason", r), zap.Stack("stack"))
				err = fmt.Errorf("%w: %v", ErrHandlerPanic, r)
			}
			outcome <- err
		}()
		err = users()
	}()
	return <-outcome
}
