package actors

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/partita-go/partita/internal/sequencer"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// txPhase is how far a transaction has come.
type txPhase uint32

const (
	phaseOpen      txPhase = iota // no write has begun: it may be cancelled
	phaseWriting                  // only Flush or Actualize end it
	phaseCancelled                // its place in the log is another's
	phaseEnded
)

// Transaction is an open sequencing transaction. Its numbers and offsets are the
// owner's until it ends:
//
//	Next*  ─> Write, or Event and your own write ─┬─ durable ─────────> Flush
//	  │                                           ├─ refused ─────────> Actualize (Cancel after Write said so)
//	  └─ no write was begun ─> Cancel             └─ outcome unknown ─> Actualize
//
// [Transaction.Commit] does all that follows Next. A Transaction belongs to one
// goroutine; only the end of its context, which cancels it, is concurrent.
//
// The context that Start was given belongs to the transaction, whatever contexts the
// calls have: while no write has begun, every call looks at it first. If it has ended,
// nothing is written, the numbers go back, and the error is ErrNoTransaction and the
// cause of the context's end.
type Transaction struct {
	sequencer *Sequencer
	// ctx is the one that Start was given.
	ctx context.Context
	// start and flush are messages, which are never changed once sent.
	start   messages.Start
	flush   messages.Flush
	started *messages.Started
	// reservation counts the numbers.
	reservation sequencer.Reservation
	numbers     []messages.SequenceNumber
	// few is where numbers begins.
	few [4]messages.SequenceNumber
	// brought is how many of them were brought along, moves are what sequences were moved to.
	brought uint32
	moves   []messages.SequenceNumber
	// raised are the explicit ids that were announced.
	raised  []messages.SequenceNumber
	unwatch func() bool

	// phase is a txPhase: the end of the context may change it at any time.
	phase atomic.Uint32
	// lapsed says that the context has ended.
	lapsed atomic.Bool
}

func (t *Transaction) begin(kinds *sequencer.Kinds, started *messages.Started) error {
	reservation, err := kinds.Reserve(t.start.Workspace, t.start.Kind, started)
	if err != nil {
		return err
	}
	t.started, t.reservation = started, reservation
	t.flush.Token, t.flush.Last = started.Token, reservation.Last()
	t.numbers = t.few[:0]
	return nil
}

// Token names the transaction.
func (t *Transaction) Token() messages.Token { return t.started.Token }

// PLogOffset is the event's place in the partition's log.
func (t *Transaction) PLogOffset() messages.PLogOffset { return t.started.Token.PLogOffset }

// WLogOffset is the event's place in the workspace's log.
func (t *Transaction) WLogOffset() messages.WLogOffset { return t.started.WLogOffset }

// RegisteredAt is the event's time of registration.
func (t *Transaction) RegisteredAt() messages.Timestamp { return t.started.RegisteredAt }

// Numbers returns what Bring has brought along and Next has given so far, in order. The caller must not
// change it.
func (t *Transaction) Numbers() []messages.SequenceNumber { return t.numbers }

// Next gives the next number of a sequence, see NextRange.
func (t *Transaction) Next(ctx context.Context, seq messages.SeqID) (messages.Number, error) {
	return t.NextRange(ctx, messages.Wanted{Seq: seq})
}

// NextRange gives the next numbers of a sequence, all that are wanted or none, and returns
// the first one: the others follow it without a hole. It asks nobody: while the transaction
// is open, its workspace's sequences are its own. If the partition has ended the
// transaction meanwhile, the numbers are worth nothing, since the write is refused
// with ErrFenced.
//
// ErrUnknownSequence, ErrOverflow, ErrTooManyNumbers and, after a Move of the sequence, ErrDraft leave the transaction open
// and consume nothing. If ctx has ended, the transaction is cancelled.
// ErrNoTransaction: it has ended, or its own context has.
func (t *Transaction) NextRange(ctx context.Context, w messages.Wanted) (first messages.Number, err error) {
	if err := t.countable(ctx); err != nil {
		return 0, err
	}
	if err := t.behindMove(w.Seq, math.MaxUint64); err != nil {
		return 0, err
	}
	given, err := t.reservation.Next(w)
	if err != nil {
		return 0, err
	}
	t.numbers = messages.AppendNumbers(t.numbers, w, given)
	return given.Number, nil
}

// Raise announces the explicit id of a new record of the event, so that its
// sequence goes on above it. ErrExplicitID (above the cap), ErrUnknownSequence and ErrDraft (above
// what the sequence was moved to) leave the transaction open. If ctx has ended, the transaction is cancelled.
func (t *Transaction) Raise(ctx context.Context, id messages.RecordID) error {
	if err := t.countable(ctx); err != nil {
		return err
	}
	if err := t.behindMove(id.Seq, id.Number); err != nil {
		return err
	}
	if err := t.reservation.Raise(id); err != nil {
		return err
	}
	t.raised = append(t.raised, id.SequenceNumber())
	return nil
}

// alive returns why the transaction can be neither given numbers nor written.
func (t *Transaction) alive() error {
	t.noteEnd()
	if is := t.current(); is != phaseOpen {
		return t.phaseError(is)
	}
	return nil
}

// noteEnd cancels the transaction if its context has ended, since the goroutine that watches for that may be late.
func (t *Transaction) noteEnd() {
	if t.ctx.Err() != nil {
		t.stopWatching()
		t.expire()
	}
}

// countable returns why no number can be reserved.
func (t *Transaction) countable(ctx context.Context) error {
	if err := t.alive(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		t.stopWatching()
		t.expire()
		return context.Cause(ctx)
	}
	return nil
}

// unannounced returns the explicit ids of the event that were not announced yet.
func (t *Transaction) unannounced(records []messages.Record) []messages.SequenceNumber {
	var announced messages.NumberSet
	return slices.DeleteFunc(messages.AppendExplicit(nil, t.numbers, records), func(id messages.SequenceNumber) bool {
		return announced.Has(t.raised, id)
	})
}

// agrees returns an error unless the event's explicit ids are those announced.
func (t *Transaction) agrees(records []messages.Record) error {
	if ids := t.unannounced(records); len(ids) > 0 {
		return fmt.Errorf("%w: %v: new record %v: got no Raise", ErrNotRaised, t.Token(), ids[0].Record())
	}
	if len(t.raised) == 0 {
		return nil
	}
	var brought messages.NumberSet
	created := messages.AppendExplicit(nil, nil, records)
	for _, id := range t.raised {
		if !brought.Has(created, id) {
			return fmt.Errorf("%w: %v: got Raise of %v, want it among the new records", ErrNotRaised, t.Token(), id.Record())
		}
	}
	return nil
}

// Event returns the transaction's event, to be written by the caller. From then
// on only Flush or Actualize end the transaction. New records whose ids are not
// numbers of this transaction must have been announced with Raise, and announced
// ones must be there, else it returns ErrNotRaised; a record that is updated must not be
// ahead of its sequence, else it returns a [*messages.RecordAheadError]. Then the
// transaction stays open. ErrNoTransaction: it has ended, or its own context has.
func (t *Transaction) Event(body []byte, records ...messages.Record) (messages.Event, error) {
	if err := t.alive(); err != nil {
		return messages.Event{}, err
	}
	if err := t.agrees(records); err != nil {
		return messages.Event{}, err
	}
	if err := t.reservation.Covers(records); err != nil {
		return messages.Event{}, err
	}
	if err := t.enter(phaseWriting, phaseOpen); err != nil {
		return messages.Event{}, err
	}
	return messages.Event{
		Kind:          messages.EventBusiness,
		Epoch:         t.Token().Epoch,
		Partition:     t.Token().Partition,
		PLogOffset:    t.Token().PLogOffset,
		Workspace:     t.start.Workspace,
		WorkspaceKind: t.start.Kind,
		WLogOffset:    t.started.WLogOffset,
		RegisteredAt:  t.started.RegisteredAt,
		Date:          t.start.Date,
		Trace:         t.start.Trace,
		Zone:          t.start.Zone,
		Numbers:       t.numbers,
		Brought:       t.brought,
		Moves:         t.moves,
		Body:          body,
		Records:       records,
	}, nil
}

// Write writes the transaction's event to the application's store; explicit ids of
// new records are announced first, see Raise and Event for those errors, which
// leave the transaction open. After nil, end with Flush. After an error, end with Actualize; if the error is one that has
// surely left nothing (a [*storage.ConflictError] of the workspace's log or of a
// record, ErrInvalidEvent, ErrTailFull, ErrFull, the error of ctx), Cancel is allowed and cheaper.
// ErrNoTransaction: it has ended, or its own context has, and nothing was written. A write
// that has begun is not stopped by the end of that context.
func (t *Transaction) Write(ctx context.Context, body []byte, records ...messages.Record) error {
	for _, id := range t.unannounced(records) {
		if err := t.Raise(ctx, id.Record()); err != nil {
			return err
		}
	}
	event, err := t.Event(body, records...)
	if err != nil {
		return err
	}
	err = t.sequencer.store.Append(ctx, storage.Batch{
		Partition: t.Token().Partition,
		Epoch:     t.Token().Epoch,
		Events:    []messages.Event{event},
	})
	if err != nil && nothingWritten(err) {
		t.reopen()
	}
	return err
}

// Commit writes the transaction's event and ends the transaction, whatever
// happens. Nil: the event is durable. ErrOutcomeUnknown: it is wholly there or
// not at all, and ctx or the store ended before the log could tell. Any other
// error: nothing was written; ErrNoTransaction with the cause of its end, if the context that
// Start was given has ended. ErrWriteBegun, after Write or Event, changes nothing.
func (t *Transaction) Commit(ctx context.Context, body []byte, records ...messages.Record) error {
	err := t.Write(ctx, body, records...)
	switch {
	case err == nil:
		// The event is durable, whatever becomes of this: if the partition has ended or
		// was taken over, the next one learns it from the log.
		_ = t.Flush(ctx)
		return nil
	case errors.Is(err, ErrWriteBegun), errors.Is(err, messages.ErrNoTransaction):
		// Nothing was tried: what becomes of a write begun before is for Flush or Actualize.
		return err
	case t.current() != phaseWriting:
		// Nothing was written; the end of ctx may have cancelled already.
		return errors.Join(err, t.Cancel(ctx))
	}
	if actualizeErr := t.Actualize(ctx); actualizeErr != nil || !errors.Is(err, messages.ErrOutcomeUnknown) {
		return err
	}
	return t.askLog(ctx, err)
}

// askLog finds out what became of a write: after Actualize, a Flush is answered
// from the log.
func (t *Transaction) askLog(ctx context.Context, unknown error) error {
	_, err := demand[*messages.Flushed](ctx, t.sequencer, &t.flush)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, messages.ErrFenced):
		return fmt.Errorf("%w: the write did not happen", err)
	}
	return errors.Join(unknown, err)
}

// Flush ends the transaction: its event is durable. It may be repeated; a late
// one is answered from the log: nil if the event is there, ErrFenced if it is not
// and will never be. When ctx ends before the answer, Flush has been asked for
// all the same. ErrNoTransaction: it was cancelled, by Cancel or by the end of the
// context that it was started with, and nothing of it is there.
func (t *Transaction) Flush(ctx context.Context) error {
	t.noteEnd()
	if t.current() == phaseCancelled {
		return t.phaseError(phaseCancelled)
	}
	t.end()
	return conclude[*messages.Flushed](ctx, t.sequencer, &t.flush)
}

// Actualize ends the transaction: its write failed or has an unknown outcome. The
// partition is busy until it has replayed the tail of its log. When ctx ends
// before the answer, it has been asked for all the same.
func (t *Transaction) Actualize(ctx context.Context) error {
	t.end()
	return conclude[*messages.Actualizing](ctx, t.sequencer, &messages.Actualize{Token: t.Token()})
}

// Cancel ends the transaction, of which no write was begun: its numbers go back.
// It returns ErrWriteBegun after Event, or after a Write that may have left
// something, and does nothing then. Cancelling again, or after ctx did, is
// harmless.
func (t *Transaction) Cancel(ctx context.Context) error {
	switch err := t.enter(phaseCancelled, phaseOpen); {
	case errors.Is(err, messages.ErrNoTransaction):
		return nil
	case err != nil:
		return err
	}
	t.stopWatching()
	return conclude[*messages.Cancelled](ctx, t.sequencer, &messages.Cancel{Token: t.Token()})
}

// expire cancels the transaction when its context ends before a write has begun.
func (t *Transaction) expire() {
	t.lapsed.Store(true)
	if t.enter(phaseCancelled, phaseOpen) == nil {
		t.sequencer.send(&messages.Cancel{Token: t.Token()})
	}
}

// reopen goes back to before a write that has left nothing. If the context has ended
// meanwhile, which a write under way keeps from cancelling, it cancels now.
func (t *Transaction) reopen() {
	t.setPhase(phaseOpen)
	if t.lapsed.Load() {
		t.expire()
	}
}

// end marks the transaction as ended, whatever it was.
func (t *Transaction) end() {
	t.setPhase(phaseEnded)
	t.stopWatching()
}

func (t *Transaction) stopWatching() {
	if t.unwatch != nil {
		t.unwatch()
	}
}

func (t *Transaction) setPhase(p txPhase) { t.phase.Store(uint32(p)) }

func (t *Transaction) current() txPhase { return txPhase(t.phase.Load()) }

// enter changes the phase if it is as wanted.
func (t *Transaction) enter(next, want txPhase) error {
	if !t.phase.CompareAndSwap(uint32(want), uint32(next)) {
		return t.phaseError(t.current())
	}
	return nil
}

func (t *Transaction) phaseError(is txPhase) error {
	if is == phaseWriting {
		return fmt.Errorf("%w: %v", ErrWriteBegun, t.Token())
	}
	if is == phaseCancelled && t.ctx.Err() != nil {
		return fmt.Errorf("%w: %v was cancelled: %w", messages.ErrNoTransaction, t.Token(), context.Cause(t.ctx))
	}
	return fmt.Errorf("%w: %v", messages.ErrNoTransaction, t.Token())
}
