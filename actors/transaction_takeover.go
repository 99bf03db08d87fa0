package actors

import (
	"context"
	"fmt"

	"github.com/partita-go/partita/messages"
)

// Bring gives the event a number of an old system instead of a new one. It must be above the last one of its
// sequence, else the error is a [*messages.BackwardError]; the sequence goes on above it. What is brought along comes
// before what Next gives, so after Next it is refused with ErrDraft. Of a sequence that restarts it is a number of the
// transaction's period, which may be named: another one is refused with ErrDraft.
//
// These errors, ErrUnknownSequence, ErrOverflow and ErrTooManyNumbers leave the transaction open and consume nothing.
// If ctx has ended, the transaction is cancelled. ErrNoTransaction: it has ended, or its own context has.
func (t *Transaction) Bring(ctx context.Context, n messages.SequenceNumber) error {
	if err := t.countable(ctx); err != nil {
		return err
	}
	if given := len(t.numbers) - int(t.brought); given > 0 {
		return fmt.Errorf("%w: %v: %v is brought along behind %d numbers that were given", messages.ErrDraft, t.Token(), n, given)
	}
	if err := t.behindMove(n.Seq, n.Number); err != nil {
		return err
	}
	n, err := t.reservation.Bring(n)
	if err != nil {
		return err
	}
	t.numbers, t.brought = append(t.numbers, n), t.brought+1
	return nil
}

// Move moves a sequence forward to a number, which the event does not get. It comes last: the transaction gets no
// number of that sequence any more, and no record with an id above it, but ErrDraft. The rules and the errors are
// those of [Transaction.Bring].
func (t *Transaction) Move(ctx context.Context, n messages.SequenceNumber) error {
	if err := t.countable(ctx); err != nil {
		return err
	}
	if len(t.moves) >= messages.MaxEventNumbers {
		return fmt.Errorf("%w: got %d moves, want at most %d", messages.ErrTooManyNumbers, len(t.moves)+1, messages.MaxEventNumbers)
	}
	n, err := t.reservation.Move(n)
	if err == nil {
		t.moves = append(t.moves, n)
	}
	return err
}

// behindMove returns why a number of a sequence, at most this one, can't come any more.
func (t *Transaction) behindMove(seq messages.SeqID, number messages.Number) error {
	for _, n := range t.moves {
		if n.Seq == seq && number > n.Number {
			return fmt.Errorf("%w: %v: the event has moved sequence %d to %d, want that to come last", messages.ErrDraft, t.Token(), seq, n.Number)
		}
	}
	return nil
}
