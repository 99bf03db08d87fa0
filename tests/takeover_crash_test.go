package tests

import (
	"context"
	"errors"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// oldSystem is what a client's transaction takes over, if it does.
type oldSystem struct {
	client  *client
	works   bool
	brought uint32
	moves   []messages.SequenceNumber
}

// last asks a transaction for the last number of a sequence: the error of a number that is not above it says so.
func (*oldSystem) last(ctx context.Context, tx *partition.Transaction, seq messages.SeqID) (messages.Number, error) {
	err := tx.Move(ctx, messages.SequenceNumber{Seq: seq})
	if back, ok := errors.AsType[*messages.BackwardError](err); ok {
		return back.Last, nil
	}
	return 0, err
}

// bring brings one or two numbers along, mostly over a hole.
func (o *oldSystem) bring(ctx context.Context, tx *partition.Transaction) error {
	if !o.works {
		return nil
	}
	n, err := o.last(ctx, tx, seqDelivery)
	for range 1 + o.client.random.IntN(2) {
		n += 1 + messages.Number(o.client.random.IntN(3))
		if err == nil {
			err = tx.Bring(ctx, messages.SequenceNumber{Seq: seqDelivery, Number: n})
			o.brought++
		}
	}
	return err
}

// move moves a sequence forward.
func (o *oldSystem) move(ctx context.Context, tx *partition.Transaction) error {
	if !o.works {
		return nil
	}
	to := messages.SequenceNumber{Seq: []messages.SeqID{seqInvoice, seqDelivery}[o.client.random.IntN(2)]}
	last, err := o.last(ctx, tx, to.Seq)
	if err != nil {
		return err
	}
	to.Number = last + 1 + messages.Number(o.client.random.IntN(3))
	o.moves = append(o.moves, to)
	return tx.Move(ctx, to)
}
