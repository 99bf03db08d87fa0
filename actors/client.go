package actors

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors/base"
	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Appender writes events. [storage.Store] is one.
type Appender interface {
	Append(ctx context.Context, b storage.Batch) error
}

// Sequencer is the typed client of one partition, for any goroutine that may
// wait. It is safe for concurrent use.
//
// A call that finds the partition idle does the partition's work itself, for up to four
// messages, its own and those of others, instead of waking another goroutine: see
// [Mailbox.PostAndRun]. So what a partition calls, its observer, logger and clock,
// [storage.Submitter], and what it tells its supervisor, may be called on the caller's
// goroutine, beyond the end of its context.
type Sequencer struct {
	partition *Partition
	ports     *Ports
	store     Appender
	// late is cancelLate, made once.
	late func(reply any)
}

// NewSequencer returns a client of a partition whose events go to store.
func NewSequencer(p *Partition, ports *Ports, store Appender) *Sequencer {
	s := &Sequencer{partition: p, ports: ports, store: store}
	s.late = s.cancelLate
	return s
}

// PID returns the partition actor's address, for actors that send [messages.Start]
// and the rest of the protocol themselves.
func (s *Sequencer) PID() *actor.PID { return s.partition.pid }

// Partition returns the partition's id.
func (s *Sequencer) Partition() messages.PartitionID { return s.partition.config.Sequencer.Partition }

// Status returns the partition's state as of its last change.
func (s *Sequencer) Status() messages.PartitionStatus { return s.partition.Status() }

// Start waits for its turn and opens a sequencing transaction. The context belongs to the
// transaction, which lives at the most as long: when ctx ends before a write has begun, it
// is cancelled, and what is called on it afterwards, Commit included, changes nothing and
// returns the cause. Once a write has begun the transaction limit bounds it.
//
// It returns [messages.ErrBusy] (a *BusyError with the reason and a hint when to
// retry) if the partition takes none now, the request lane being full among the
// reasons; ErrUnknownKind, ErrWrongPartition, ErrKindMismatch, ErrOverflow or a
// [*messages.BusinessDateError] if the workspace cannot have one; ErrPartitionFailed, ErrStopped,
// ErrInterrupted; a storage error if the workspace's numbers cannot be read; the error of ctx.
func (s *Sequencer) Start(ctx context.Context, kind messages.WSKind, ws messages.WSID, options ...StartOption) (*Transaction, error) {
	return s.open(ctx, kind, ws, false, options)
}

// StartOption says more about a transaction.
type StartOption func(*messages.Start)

// OnDate gives the transaction's event a business date: see [messages.Draft].
func OnDate(date calendar.Date) StartOption {
	return func(m *messages.Start) { m.Date = date }
}

// SetZone makes the transaction's event give its workspace a time zone: see [messages.Draft].
func SetZone(name string) StartOption {
	return func(m *messages.Start) { m.Zone = name }
}

// StartWaiting is Start, but waits until ctx ends for a place in the request lane
// instead of returning ErrBusy when the lane is full.
func (s *Sequencer) StartWaiting(
	ctx context.Context, kind messages.WSKind, ws messages.WSID, options ...StartOption,
) (*Transaction, error) {
	return s.open(ctx, kind, ws, true, options)
}

func (s *Sequencer) open(
	ctx context.Context, kind messages.WSKind, ws messages.WSID, wait bool, options []StartOption,
) (*Transaction, error) {
	tx := &Transaction{sequencer: s, ctx: ctx, start: messages.Start{Workspace: ws, Kind: kind, WithNumbers: true}}
	for _, option := range options {
		option(&tx.start)
	}
	tx.start.Deadline = deadlineBy(ctx, s.partition.config.Clock)
	tx.start.Trace, tx.start.Span = s.partition.config.Traces.Of(ctx)
	reply, err := s.ask(ctx, &tx.start, s.late, wait)
	if err != nil {
		return nil, err
	}
	started, err := expect[*messages.Started](reply)
	if err != nil {
		return nil, err
	}
	if err := tx.begin(s.partition.kinds, started); err != nil {
		s.cancelLate(started)
		return nil, err
	}
	if ctx.Done() != nil {
		tx.unwatch = context.AfterFunc(ctx, tx.expire)
	}
	return tx, nil
}

// cancelLate gives back a transaction that was granted to somebody who has
// stopped waiting.
func (s *Sequencer) cancelLate(reply any) {
	if started, ok := reply.(*messages.Started); ok {
		s.send(&messages.Cancel{Token: started.Token})
	}
}

// ask sends the partition something and awaits the answer: see [Ports.Ask].
func (s *Sequencer) ask(ctx context.Context, m messages.PartitionMessage, late func(reply any), wait bool) (any, error) {
	return s.ports.AskThrough(ctx, m, late, func(e *actor.MessageEnvelope) error { return s.post(ctx, e, nil, wait) })
}

// post posts what the caller awaits the answer to, and may have borrowed, and waits for
// room in the request lane if it is to. If the partition is idle, the caller does its work.
func (s *Sequencer) post(ctx context.Context, e *actor.MessageEnvelope, b base.Borrowed, wait bool) error {
	if wait {
		return s.partition.mailbox.AwaitPostBorrowed(ctx, e, b)
	}
	s.partition.mailbox.PostAndRunBorrowed(e, b)
	return nil
}

// send tells the partition something whose answer nobody waits for.
func (s *Sequencer) send(m messages.PartitionMessage) {
	s.partition.config.System.Root.Send(s.partition.pid, m)
}

// demand sends a message of an open transaction and waits for the answer.
func demand[R messages.SequencerReply](ctx context.Context, s *Sequencer, m messages.PartitionMessage) (R, error) {
	reply, err := s.ask(ctx, m, nil, false)
	if err != nil {
		var none R
		return none, err
	}
	return expect[R](reply)
}

// conclude is demand for a message that ends a transaction: it is sent also when
// ctx has ended already.
func conclude[R messages.SequencerReply](ctx context.Context, s *Sequencer, m messages.PartitionMessage) error {
	if ctx.Err() != nil {
		s.send(m)
		return context.Cause(ctx)
	}
	_, err := demand[R](ctx, s, m)
	return err
}

// expect returns the reply, or the error that the answer is.
func expect[R messages.SequencerReply](reply any) (R, error) {
	if r, ok := reply.(R); ok {
		return r, nil
	}
	var none R
	if refused, ok := reply.(*messages.Refused); ok {
		return none, refused.Err
	}
	return none, fmt.Errorf("%w: got %T, want %T", ErrProtocol, reply, none)
}

// deadlineBy returns when a context ends by a clock, 0 if never. The context's own deadline is
// the machine's time, which says nothing about another clock, or about this one once it steps.
func deadlineBy(ctx context.Context, clock Clock) messages.Timestamp {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(1, messages.TimestampOf(clock.Now().Add(time.Until(deadline))))
}
