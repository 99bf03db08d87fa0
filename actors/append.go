package actors

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/internal/sequencer"
	"github.com/partita-go/partita/messages"
)

// AppendTo says where drafts go and under which conditions.
type AppendTo struct {
	Workspace messages.WSID
	Kind      messages.WSKind

	// DedupID, if set, makes the append happen once, however often it is repeated:
	// see [messages.Append].
	DedupID messages.DedupID

	// Expected, if set, is the last offset that the workspace's log must have: see
	// [messages.Append].
	Expected *messages.WLogOffset

	// Wait says to wait until the context ends for a place in the request lane,
	// instead of returning ErrBusy when the lane is full. Callers that wait get the places
	// that become free: those that do not may be refused as long as there are any.
	Wait bool
}

// Append numbers a draft, writes it and returns when the event is durable. Appends
// of many callers share one sync of the disk.
//
// It returns [messages.ErrBusy] (a *BusyError with the reason and a hint when to
// retry) if the partition takes none now; an *OffsetError; ErrDedupMismatch;
// ErrDraft, ErrTooLarge (a *TooLargeError), ErrUnknownKind, ErrUnknownSequence,
// ErrWrongPartition, ErrKindMismatch, ErrExplicitID, ErrTooManyNumbers, ErrOverflow or a *RecordAheadError if the draft
// cannot be an event of the workspace; ErrPartitionFailed, ErrStopped, ErrInterrupted; the store's
// error; the error of ctx or ErrDeadlineExceeded. Then nothing was written.
//
// ErrOutcomeUnknown, with the error of ctx if that has ended: the event is wholly
// there or not at all. With a deduplication id the same call tells which, and
// appends if it is not there.
//
// The draft is copied when it has a place in the request lane: it must not be changed
// before the call returns, and is not looked at afterwards, also if ctx has ended.
func (s *Sequencer) Append(ctx context.Context, to AppendTo, draft messages.Draft) (*messages.Appended, error) {
	return s.append(ctx, to, newAppend(&draft))
}

// AppendAll is Append for several events of one workspace, which follow one
// another in both logs and become visible together, or not at all. It returns where
// each of them stands. Together they are bounded by [messages.Settings], BatchEvents and
// GroupBytes. The records of a draft can refer to its own numbers and to
// those of the drafts before it, see [messages.DraftRecord].
func (s *Sequencer) AppendAll(ctx context.Context, to AppendTo, drafts []messages.Draft) ([]messages.Appended, error) {
	all, err := s.append(ctx, to, &ownAppend{message: messages.Append{Drafts: drafts}})
	if err != nil {
		return nil, err
	}
	each := make([]messages.Appended, 0, len(drafts))
	numbers := all.Numbers
	for i := range drafts {
		one := *all
		one.PLogOffset += messages.PLogOffset(i)
		one.WLogOffset += messages.WLogOffset(i)
		n := drafts[i].Count()
		one.Numbers, numbers = numbers[:n:n], numbers[n:]
		each = append(each, one)
	}
	return each, nil
}

func (s *Sequencer) append(ctx context.Context, to AppendTo, own *ownAppend) (*messages.Appended, error) {
	if err := s.checkBytes(ctx, to, sequencer.AppendBytes(&own.message)); err != nil {
		return nil, err
	}
	return s.appendChecked(ctx, to, own)
}

func (s *Sequencer) appendChecked(ctx context.Context, to AppendTo, own *ownAppend) (*messages.Appended, error) {
	own.address(&to)
	m := &own.message
	m.Trace, m.Span = s.partition.config.Traces.Of(ctx)
	m.Deadline = deadlineBy(ctx, s.partition.config.Clock)
	var posted *actor.MessageEnvelope
	reply, err := s.ports.AskThrough(ctx, m, nil, func(e *actor.MessageEnvelope) error {
		if err := s.post(ctx, e, own, to.Wait); err != nil {
			return err
		}
		posted = e
		return nil
	})
	switch {
	case err == nil:
		return expect[*messages.Appended](reply)
	case posted == nil || ctx.Err() == nil:
		return nil, err // nobody was there to take it
	case s.withdraw(posted, err):
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", messages.ErrOutcomeUnknown, err)
}

// checkBytes refuses what takes more than one append may, before it is copied. If it has
// the deduplication id of an append that is there, it may be that one, from a time when the
// setting was higher: the partition compares them.
func (s *Sequencer) checkBytes(ctx context.Context, to AppendTo, got int) error {
	want := s.partition.settings.Load().GroupBytes
	if got <= want {
		return nil
	}
	if !to.DedupID.IsZero() {
		if known, err := s.knows(ctx, to); known || err != nil {
			return err
		}
	}
	return &messages.TooLargeError{Workspace: to.Workspace, Got: got, Want: want}
}

// knows reports whether there is an append with a deduplication id. It asks for another one
// with that id, which can never be written.
func (s *Sequencer) knows(ctx context.Context, to AppendTo) (bool, error) {
	to.Expected = new(messages.WLogOffset(math.MaxUint64))
	_, err := s.appendChecked(ctx, to, newAppend(&messages.Draft{}))
	switch {
	case err == nil, errors.Is(err, messages.ErrDedupMismatch):
		return true, nil
	case errors.Is(err, messages.ErrExpectedOffset), errors.Is(err, messages.ErrTooLarge):
		return false, nil
	}
	return false, err
}

// withdraw takes a request back that nobody has taken yet. It gets its answer here,
// so that its port is not kept for one.
func (s *Sequencer) withdraw(posted *actor.MessageEnvelope, why error) bool {
	if !s.partition.mailbox.Withdraw(posted) {
		return false
	}
	s.partition.config.System.Root.Send(posted.Sender, &messages.Refused{Err: why})
	return true
}
