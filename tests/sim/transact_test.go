package sim

import (
	"context"
	"errors"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// transact makes a request in a transaction of the typed client.
func (c *client) transact(n *node, r *request) {
	c.takeOver(r, true)
	ctx, end := c.context(n, r, "waiting for its transaction")
	defer end()
	sequencer := n.sequencers[c.s.partitionOf(r.workspace)]
	start := sequencer.Start
	if c.random.IntN(3) == 0 {
		start = sequencer.StartWaiting
	}
	c.s.ledger.sent(r, "transaction at %s", n.name)
	tx, err := start(ctx, r.kind, r.workspace, actors.OnDate(r.drafts[0].Date), actors.SetZone(r.drafts[0].Zone))
	if !c.resumed(n) || err != nil {
		c.unwritten(n, r, err)
		return
	}
	writers := &n.writers[c.s.partitionOf(r.workspace)]
	writers.open++
	defer func() { writers.open-- }()
	c.stage = "in its transaction"
	c.s.notef("%s has %v, WLog offset %d", c.name, tx.Token(), tx.WLogOffset())
	t := &typed{client: c, node: n, request: r, tx: tx, ctx: ctx}
	t.run()
}

// unwritten ends a request that was not written for sure: the process that wanted to
// write it may have crashed before.
func (c *client) unwritten(n *node, r *request, err error) {
	if c.s.isDead(n) {
		err = errCrashed
	}
	c.turnedAway = true
	c.s.ledger.refused(r, err)
	c.s.noteBusy(n, r, err)
}

// typed is a transaction of the typed client.
type typed struct {
	*client
	node    *node
	request *request
	tx      *actors.Transaction
	ctx     context.Context
}

func (t *typed) run() {
	if err := t.count(); err != nil {
		t.cancelled(err)
		return
	}
	records := recordsOf(&t.request.drafts[0], t.tx.Numbers())
	way := t.random.IntN(12)
	if t.s.aimsAt(faultForgotten) {
		t.pause(30)
	}
	switch {
	case t.s.isDead(t.node):
		way = 0
	case t.s.patient && way == 1:
		way = 0
	case !t.s.patient && t.s.aimed(faultForgotten, t.node, t.tx.Token().Partition):
		way = 1
	}
	if t.ctx.Err() != nil && !t.s.isDead(t.node) {
		t.cancelled(t.commitTooLate(records))
		return
	}
	switch way {
	case 0:
		t.cancelled(errors.New("the client cancels"))
	case 1:
		// The client dies: the transaction limit, or the end of its context, ends it.
		t.s.hit(faultForgotten, t.node, t.tx.Token().Partition)
		t.unwritten(t.node, t.request, errors.New("the client forgets"))
	case 2:
		err := t.tx.Actualize(t.ctx)
		t.resumed(t.node)
		t.unwritten(t.node, t.request, errors.Join(errors.New("the client actualizes"), err))
	case 3, 4, 5, 6:
		err := t.tx.Commit(t.ctx, t.request.drafts[0].Body, records...)
		t.resumed(t.node)
		t.conclude(t.node, t.request, t.place(), err)
	default:
		t.write(records)
	}
}

// commitTooLate commits under another context when the transaction's own has ended.
func (t *typed) commitTooLate(records []messages.Record) error {
	err := t.tx.Commit(context.WithoutCancel(t.ctx), t.request.drafts[0].Body, records...)
	t.s.notef("request %d: commits too late: %v", t.request.id, err)
	if !errors.Is(err, messages.ErrNoTransaction) || !errors.Is(err, context.Cause(t.ctx)) {
		t.s.failf("request %d: Commit after the end of its context: got %v, want %v", t.request.id, err, messages.ErrNoTransaction)
	}
	return err
}

// count takes the numbers that the request brings along and wants, and moves sequences.
func (t *typed) count() error {
	d := &t.request.drafts[0]
	for _, n := range d.Brought {
		if err := t.tx.Bring(t.ctx, n); err != nil {
			return err
		}
	}
	for _, w := range d.Wanted {
		if _, err := t.tx.NextRange(t.ctx, w); err != nil {
			return err
		}
		if t.random.IntN(4) == 0 && !t.resumed(t.node) {
			return errCrashed
		}
	}
	return t.move(d)
}

// move moves sequences, behind the ids of new records.
func (t *typed) move(d *messages.Draft) error {
	if len(d.Moves) == 0 {
		return nil
	}
	for _, dr := range d.Records {
		if dr.New && dr.ID != (messages.RecordID{}) {
			if err := t.tx.Raise(t.ctx, dr.ID); err != nil {
				return err
			}
		}
	}
	for _, n := range d.Moves {
		if err := t.tx.Move(t.ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (t *typed) place() *place {
	return &place{plog: t.tx.PLogOffset(), wlog: t.tx.WLogOffset(), at: t.tx.RegisteredAt(), numbers: t.tx.Numbers()}
}

func (t *typed) cancelled(why error) {
	if !t.s.isDead(t.node) {
		err := t.tx.Cancel(t.ctx)
		t.resumed(t.node)
		if errors.Is(err, actors.ErrWriteBegun) {
			t.s.failf("request %d: cancel: %v", t.request.id, err)
		}
		t.misuse()
	}
	t.unwritten(t.node, t.request, why)
}

// misuse goes on with a transaction that has ended.
func (t *typed) misuse() {
	if t.random.IntN(3) > 0 || t.s.isDead(t.node) {
		return
	}
	if _, err := t.tx.Next(t.ctx, messages.SeqCRecordID); !errors.Is(err, messages.ErrNoTransaction) {
		t.s.failf("request %d: Next after the end: got %v, want %v", t.request.id, err, messages.ErrNoTransaction)
	}
}

// write writes the event and ends the transaction as its outcome asks for.
func (t *typed) write(records []messages.Record) {
	err := t.tx.Write(t.ctx, t.request.drafts[0].Body, records...)
	t.resumed(t.node)
	switch {
	case t.s.isDead(t.node):
		t.conclude(t.node, t.request, nil, err)
	case err == nil:
		t.conclude(t.node, t.request, t.place(), nil)
		t.flush()
	case errors.Is(err, messages.ErrOutcomeUnknown):
		t.ask(err)
	default:
		t.unwritten(t.node, t.request, err)
		if errors.Is(t.tx.Cancel(t.ctx), actors.ErrWriteBegun) {
			_ = t.tx.Actualize(t.ctx) // the limit ends it otherwise
		}
		t.resumed(t.node)
	}
}

// flush ends a transaction whose event is in the log: nobody may say that it is not.
func (t *typed) flush() {
	if t.random.IntN(8) == 0 && !t.s.patient {
		t.s.hit(faultForgotten, t.node, t.tx.Token().Partition)
		return
	}
	times := 1 + t.random.IntN(3)
	if t.s.aimsAtOp(opPLog) {
		times = 4
	}
	for range times {
		err := t.tx.Flush(t.ctx)
		if !t.resumed(t.node) {
			return
		}
		t.s.notef("request %d: flushed: %v", t.request.id, err)
		if errors.Is(err, messages.ErrFenced) {
			t.s.failf("request %d: Flush of what is in the log: %v", t.request.id, err)
		}
		t.pause(20)
	}
	t.misuse()
}

// pause lets others go on, one time out of two: they may stand at its place meanwhile.
func (t *typed) pause(most int) {
	if t.random.IntN(2) == 0 {
		t.s.wait(&task{key: t.name, due: t.s.after(time.Duration(t.random.IntN(most)) * time.Millisecond)})
	}
}

// ask finds out what has become of a write whose outcome is unknown.
func (t *typed) ask(unknown error) {
	err := t.tx.Actualize(t.ctx)
	if t.resumed(t.node) {
		t.s.notef("request %d: actualizes after %v: %v", t.request.id, unknown, err)
		t.pause(60)
		err = t.tx.Flush(t.ctx)
		t.resumed(t.node)
	}
	switch {
	case !t.s.isDead(t.node) && err == nil:
		t.conclude(t.node, t.request, t.place(), nil)
	case !t.s.isDead(t.node) && errors.Is(err, messages.ErrFenced):
		t.unwritten(t.node, t.request, err)
	case t.s.isDead(t.node):
		t.s.ledger.unknown(t.request, errCrashed)
	default:
		t.s.ledger.unknown(t.request, errors.Join(unknown, err))
	}
}
