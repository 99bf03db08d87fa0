package tests

import (
	"context"
	"math/rand/v2"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// midnightCaller is one of the callers.
type midnightCaller struct {
	*midnight
	app              *partition.App
	random           *rand.Rand
	commands, drafts *partition.CommandProcessor
	answers          []midnightAnswer
}

func (c *midnightCaller) callUntilOver(ctx context.Context) error {
	for !c.tick() {
		if err := c.call(ctx, messages.WSID(c.random.IntN(midnightWorkspaces))); err != nil {
			return err
		}
	}
	return nil
}

// call appends in one of the ways there are.
func (c *midnightCaller) call(ctx context.Context, ws messages.WSID) error {
	switch n := c.random.IntN(1000); {
	case n < 6:
		return c.transaction(ctx, ws, n < 3)
	case n < 10:
		return c.command(ctx, ws, c.commands)
	case n < 200:
		return c.command(ctx, ws, c.drafts)
	case n < 400:
		return c.append(ctx, ws, c.draft(), c.draft(), c.draft())
	default:
		return c.append(ctx, ws, c.draft())
	}
}

// draft wants some numbers. Now and then it has a business date: early at first, late in the end.
func (c *midnightCaller) draft() messages.Draft {
	wanted := []messages.Wanted{{Seq: seqReceipt}, {Seq: seqReceipt, Count: 2}, {Seq: seqDelivery}, {Seq: seqInvoice}}
	d := messages.Draft{Wanted: wanted[:1+c.random.IntN(len(wanted))]}
	if c.random.IntN(50) == 0 {
		d.Wanted, d.Date = wanted[:2], c.date
	}
	return d
}

func (c *midnightCaller) append(ctx context.Context, ws messages.WSID, drafts ...messages.Draft) error {
	sequencer, err := c.app.SequencerOf(ws)
	if err != nil {
		return err
	}
	to := partition.AppendTo{Workspace: ws, Kind: kindShop, Wait: true}
	if len(drafts) == 1 {
		done, err := sequencer.Append(ctx, to, drafts[0])
		if err == nil {
			c.answer(ws, done.WLogOffset, done.RegisteredAt, done.Numbers)
		}
		return err
	}
	all, err := sequencer.AppendAll(ctx, to, drafts)
	for _, done := range all {
		c.answer(ws, done.WLogOffset, done.RegisteredAt, done.Numbers)
	}
	return err
}

func (c *midnightCaller) command(ctx context.Context, ws messages.WSID, p *partition.CommandProcessor) error {
	done, err := p.Execute(ctx, messages.Command{Workspace: ws, Kind: kindShop})
	if err == nil {
		c.answer(ws, done.WLogOffset, done.RegisteredAt, done.Numbers)
	}
	return err
}

// transaction takes numbers one by one, and gives them back if it is cancelled.
func (c *midnightCaller) transaction(ctx context.Context, ws messages.WSID, cancel bool) error {
	sequencer, err := c.app.SequencerOf(ws)
	if err != nil {
		return err
	}
	tx, err := sequencer.StartWaiting(ctx, kindShop, ws)
	if err != nil {
		return err
	}
	for _, seq := range []messages.SeqID{seqReceipt, seqDelivery, seqReceipt} {
		if _, err := tx.Next(ctx, seq); err != nil {
			return err
		}
	}
	if cancel {
		return tx.Cancel(ctx)
	}
	err = tx.Commit(ctx, nil)
	if err == nil {
		c.answer(ws, tx.WLogOffset(), tx.RegisteredAt(), tx.Numbers())
	}
	return err
}

func (c *midnightCaller) answer(ws messages.WSID, first messages.WLogOffset, at messages.Timestamp, numbers []messages.SequenceNumber) {
	c.answers = append(c.answers, midnightAnswer{ws: ws, first: first, at: at, numbers: numbers})
}

// midnightAnswer is what a caller was told about its events, which follow each other.
type midnightAnswer struct {
	ws      messages.WSID
	first   messages.WLogOffset
	at      messages.Timestamp
	numbers []messages.SequenceNumber
}
