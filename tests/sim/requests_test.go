package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// append sends a request as one message.
func (c *client) append(n *node, r *request) {
	c.takeOver(r, false)
	ctx, end := c.context(n, r, "appending")
	defer end()
	to := actors.AppendTo{
		Workspace: r.workspace, Kind: r.kind, DedupID: r.dedup, Expected: r.expected, Wait: c.random.IntN(3) == 0,
	}
	c.s.ledger.sent(r, "append to %s, id %v", n.name, r.dedup)
	sequencer := n.sequencers[c.s.partitionOf(r.workspace)]
	if len(r.drafts) == 1 {
		a, err := sequencer.Append(ctx, to, r.drafts[0])
		c.resumed(n)
		c.conclude(n, r, placeOf(a), err)
		return
	}
	all, err := sequencer.AppendAll(ctx, to, r.drafts)
	c.resumed(n)
	var at *place
	if err == nil {
		at = placeOf(&all[0])
		for _, a := range all[1:] {
			at.numbers = append(slices.Clip(at.numbers), a.Numbers...)
		}
	}
	c.conclude(n, r, at, err)
}

// handling is what a handler or drafter does with a command besides writing it.
type handling uint8

const (
	handles handling = iota
	handlerFails
	handlerPanics
)

var errHandler = errors.New("the handler refuses")

// command sends a request through a command processor.
func (c *client) command(n *node, r *request) {
	r.command = true
	r.handler = handles
	if c.random.IntN(8) == 0 {
		r.handler = handlerFails + handling(c.random.IntN(2))
	}
	ctx, end := c.context(n, r, "commanding")
	defer end()
	processor, name := n.drafter, "drafter"
	if r.dedup.IsZero() && r.expected == nil && c.random.IntN(2) == 0 {
		processor, name = n.handler, "handler"
	}
	d := &r.drafts[0]
	command := messages.Command{Workspace: r.workspace, Kind: r.kind, Body: d.Body, DedupID: r.dedup, Expected: r.expected, Date: d.Date, Zone: d.Zone}
	c.s.ledger.sent(r, "command to %s of %s, id %v", name, n.name, r.dedup)
	done, err := processor.Execute(ctx, command)
	c.resumed(n)
	var at *place
	if err == nil {
		at = &place{plog: done.PLogOffset, wlog: done.WLogOffset, at: done.RegisteredAt, numbers: done.Numbers, repeated: done.Repeated}
	}
	c.conclude(n, r, at, err)
}

// requestOf finds the request that a command's body is of.
func (n *node) requestOf(body []byte) *request {
	var id, event int
	if _, err := fmt.Sscanf(string(body), "request %d event %d", &id, &event); err != nil {
		panic(err)
	}
	return n.s.ledger.requests[id]
}

func (r *request) handled() error {
	switch r.handler {
	case handlerFails:
		return errHandler
	case handlerPanics:
		panic("injected in the handler")
	case handles:
	}
	return nil
}

// handle is the handler of commands that are transactions.
func (n *node) handle(ctx context.Context, c *actors.CommandContext) error {
	n.s.gate(n, n.name+" handler")
	r := n.requestOf(c.Command().Body)
	d := &r.drafts[0]
	var numbers []messages.SequenceNumber
	for _, w := range d.Wanted {
		for range w.Numbers() {
			number, err := c.Next(ctx, w.Seq)
			if err != nil {
				return err
			}
			numbers = append(numbers, messages.SequenceNumber{Seq: w.Seq, Number: number})
		}
	}
	for _, record := range recordsOf(d, numbers) {
		if !record.New {
			c.Update(record.ID, record.Data)
		} else if err := c.Insert(ctx, record.ID, record.Data); err != nil {
			return err
		}
	}
	return r.handled()
}

// draft is the drafter of commands that are appended.
func (n *node) draft(_ context.Context, dc *actors.DraftContext) error {
	n.s.gate(n, n.name+" drafter")
	r := n.requestOf(dc.Command().Body)
	d := &r.drafts[0]
	for _, w := range d.Wanted {
		for range w.Numbers() {
			dc.Want(w.Seq)
		}
	}
	for _, record := range d.Records {
		switch {
		case record.ID == (messages.RecordID{}):
			dc.Insert(record.Number, record.Data)
		case record.New:
			dc.InsertID(record.ID, record.Data)
		default:
			dc.Update(record.ID, record.Data)
		}
	}
	return r.handled()
}
