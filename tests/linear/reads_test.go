package linear

import (
	"context"
	"iter"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// read does one of the reads.
func (c *client) read(ctx context.Context) {
	called := c.tick()
	o, a, err := c.look(ctx)
	if err != nil {
		c.recover(ctx, err)
		return
	}
	c.answered(c.process, called, o, a)
}

func (c *client) look(ctx context.Context) (operation, answer, error) {
	ws := c.workspace()
	p := messages.PartitionOf(ws, partitions)
	// What the store suffers is for the partitions: a read that fails says nothing.
	store := c.store.Inner()
	switch c.random.IntN(5) {
	case 0:
		a, err := logRead(store.PLog(ctx, p, 1))
		return readPLog{p}, a, err
	case 1:
		a, err := logRead(store.WLog(ctx, ws, 1))
		return readWLog{ws}, a, err
	case 2:
		r, err := store.Register(ctx, p)
		return readRegister{p}, answer{plog: r.Last}, err
	case 3:
		n := messages.Number(1 + c.random.IntN(4+c.count))
		a, err := rowRead(ctx, store, ws, n)
		return readRow{ws, n}, a, err
	default:
		w := c.names.pick(c.random)
		if w == nil {
			w = new(write)
		}
		at, err := store.Find(ctx, w.workspace, w.id)
		return find{w.workspace, w.id}, answer{wlog: at}, err
	}
}

func logRead(events iter.Seq2[messages.Event, error]) (answer, error) {
	var a answer
	for e, err := range events {
		if err != nil {
			return answer{}, err
		}
		a.count++
		a.sum = chain(a.sum, eventSum(e.Workspace, e.WLogOffset, string(e.Body), e.Numbers))
	}
	return a, nil
}

func rowRead(ctx context.Context, store storage.Store, ws messages.WSID, n messages.Number) (answer, error) {
	var a answer
	for row, err := range store.Records(ctx, ws, storage.RecordRange{Seq: seqInvoice, From: n, To: n}) {
		if err != nil {
			return answer{}, err
		}
		a.row, a.there = string(row.Data), true
	}
	return a, nil
}
