package soak

import (
	"context"
	"errors"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// command lets a command processor do a transaction, or an append.
func (c *client) command(ctx context.Context, d *deployment, p *partition.CommandProcessor, latencies *recorder) error {
	event := c.notes.take()
	cmd := messages.Command{
		Workspace: c.workspace(), Kind: kindShop, Body: newBody(c.notes.client, event),
		RawRecords: []messages.RawRecord{{ID: 1}},
	}
	if d.fatal.CompareAndSwap(true, false) {
		cmd.RawRecords = append(cmd.RawRecords, messages.RawRecord{ID: fatal})
		c.run.count(deaths, 1)
	}
	began := time.Now()
	done, err := p.Execute(ctx, cmd)
	if err != nil {
		return c.writeFailed(event, err)
	}
	latencies.record(c.notes.client, time.Since(began))
	c.acknowledged(event, &promise{
		partition: done.Partition, plog: done.PLogOffset, workspace: cmd.Workspace, wlog: done.WLogOffset,
		at: done.RegisteredAt, numbers: done.Numbers, body: cmd.Body, records: []messages.RecordID{done.IDs[1]},
	})
	return nil
}

// fatal is the raw id of commands that their handlers panic with.
const fatal messages.RawID = 2

// decide is the handler of commands that run in a transaction.
func decide(ctx context.Context, c *partition.CommandContext) error {
	dieOf(c.Command())
	if _, err := c.Next(ctx, seqReceipt); err != nil {
		return err
	}
	id, err := c.ID(1)
	if err != nil {
		return err
	}
	return c.Insert(ctx, id, c.Command().Body)
}

// drafted is the drafter of commands that are appended.
func drafted(_ context.Context, d *partition.DraftContext) error {
	dieOf(d.Command())
	number, err := d.Number(1)
	if err != nil {
		return err
	}
	d.Insert(number, d.Command().Body)
	d.Want(seqReceipt)
	return nil
}

func dieOf(c *messages.Command) {
	for _, raw := range c.RawRecords {
		if raw.ID == fatal {
			panic("a handler dies")
		}
	}
}

func (c *client) writeFailed(event uint64, err error) error {
	if errors.Is(err, messages.ErrOutcomeUnknown) {
		c.notes.doubtful(event)
	}
	return err
}

// transaction does a transaction step by step, and sometimes does not end it.
func (c *client) transaction(ctx context.Context, d *deployment) error {
	ws := c.workspace()
	sequencer, err := d.app.SequencerOf(ws)
	if err != nil {
		return err
	}
	event := c.notes.take()
	began := time.Now()
	tx, err := sequencer.StartWaiting(ctx, kindShop, ws)
	if err != nil {
		return err
	}
	id, err := tx.Next(ctx, seqInvoice)
	if err != nil {
		return errors.Join(err, tx.Cancel(ctx))
	}
	if c.wantsVoucher() {
		if _, err := tx.Next(ctx, seqVoucher); err != nil && !c.run.usedUp(ws, err) {
			return errors.Join(err, tx.Cancel(ctx))
		}
	}
	switch n := c.random.IntN(1000); {
	case n < 20:
		return tx.Cancel(ctx)
	case n < 22:
		return tx.Actualize(ctx)
	}
	body, record := newBody(c.notes.client, event), messages.RecordID{Seq: seqInvoice, Number: id}
	// What the store panics with leaves the transaction open, and its outcome unknown.
	err = survived(func() error { return tx.Commit(ctx, body, messages.Record{ID: record, New: true, Data: body}) })
	if err != nil {
		return c.writeFailed(event, err)
	}
	c.run.transactions.record(c.notes.client, time.Since(began))
	c.acknowledged(event, &promise{
		partition: tx.Token().Partition, plog: tx.PLogOffset(), workspace: ws, wlog: tx.WLogOffset(),
		at: tx.RegisteredAt(), numbers: tx.Numbers(), body: body, records: []messages.RecordID{record},
	})
	return nil
}

// abandon opens a transaction that its owner never ends: the partition takes it away when
// its limit has passed.
func (r *run) abandon(ctx context.Context, d *deployment, ws messages.WSID) {
	sequencer, err := d.app.SequencerOf(ws)
	if err != nil {
		r.failed(err)
		return
	}
	// The end of ctx bounds the wait for the transaction, but must not cancel it.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	granting := context.AfterFunc(ctx, cancel)
	defer granting()
	if _, err := sequencer.StartWaiting(own, kindShop, ws); err != nil {
		r.failed(err)
		return
	}
	r.count(deaths, 1)
}

// read reads a workspace's last events and some of its records, now and then.
func (c *client) read(ctx context.Context, d *deployment) error {
	wait(ctx, between(c.random, 0, 10*time.Millisecond))
	ws := c.workspace()
	known, err := d.store.Numbers(ctx, ws)
	if err != nil {
		return err
	}
	last := messages.WLogOffset(1)
	for _, n := range known.Numbers {
		if n.Seq == messages.SeqWLogOffset {
			last = messages.WLogOffset(n.Number)
		}
	}
	if err := c.readLog(ctx, d, ws, last); err != nil {
		return err
	}
	for row, err := range d.store.Records(ctx, ws, storage.RecordRange{Seq: seqInvoice, From: 1, To: 10}) {
		if err != nil {
			return err
		}
		if _, _, ok := parseBody(row.Data); !ok {
			c.run.troublef("workspace %d, record %v: got %x", ws, row.ID, row.Data)
		}
	}
	c.run.count(reads, 1)
	return nil
}

// readLog reads up to a hundred events, which must follow one another.
func (c *client) readLog(ctx context.Context, d *deployment, ws messages.WSID, from messages.WLogOffset) error {
	next := from
	for e, err := range d.store.WLog(ctx, ws, from) {
		if err != nil {
			return err
		}
		if e.WLogOffset != next || e.Workspace != ws {
			c.run.troublef("workspace %d: read offset %d of %d, want %d", ws, e.WLogOffset, e.Workspace, next)
		}
		if next++; next > from+100 {
			return nil
		}
	}
	return nil
}
