package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// client is one goroutine's share of the load.
type client struct {
	*child
	id     uint64
	count  int
	random *rand.Rand
	// named is the last append that had a deduplication id and was answered, doubtful
	// are those of which nobody knows.
	named    *begun
	doubtful []*begun
}

func (b *client) workspace() messages.WSID { return messages.WSID(b.random.Uint64N(b.Workspaces)) }

// body is unique.
func (b *client) body() string { return fmt.Sprintf("%x-%d-%d", b.Seed, b.id, b.count) }

// limited gives some requests a deadline that passes at a random moment.
func (b *client) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.random.IntN(20) > 0 {
		return context.WithTimeout(ctx, time.Minute)
	}
	return context.WithTimeout(ctx, time.Duration(b.random.Int64N(int64(3*time.Millisecond))))
}

func (b *client) command(ctx context.Context, p *partition.CommandProcessor) {
	ctx, cancel := b.limited(ctx)
	defer cancel()
	c := messages.Command{Workspace: b.workspace(), Kind: kindShop, Body: []byte(b.body())}
	for i := range b.random.IntN(3) {
		c.RawRecords = append(c.RawRecords, messages.RawRecord{ID: messages.RawID(i + 1)})
	}
	done, err := p.Execute(ctx, c)
	if err != nil {
		b.failed(ctx, err)
		return
	}
	a := &acked{
		Partition: done.Partition, PLogOffset: done.PLogOffset, Workspace: c.Workspace, WLogOffset: done.WLogOffset,
		At: done.RegisteredAt, Numbers: done.Numbers, Body: string(c.Body),
	}
	for _, raw := range c.RawRecords {
		a.Records = append(a.Records, done.IDs[raw.ID])
	}
	b.acked(a)
}

func (b *client) transaction(ctx context.Context) {
	ctx, cancel := b.limited(ctx)
	defer cancel()
	ws := b.workspace()
	sequencer, err := b.app.SequencerOf(ws)
	if err != nil {
		b.failed(ctx, err)
		return
	}
	tx, err := sequencer.StartWaiting(ctx, kindShop, ws)
	if err != nil {
		b.failed(ctx, err)
		return
	}
	old := oldSystem{client: b, works: b.random.IntN(6) == 0}
	if err := old.bring(ctx, tx); err != nil {
		_ = tx.Cancel(ctx)
		b.failed(ctx, err)
		return
	}
	for range b.random.IntN(3) {
		if _, err := tx.Next(ctx, []messages.SeqID{seqInvoice, seqDelivery}[b.random.IntN(2)]); err != nil {
			_ = tx.Cancel(ctx)
			b.failed(ctx, err)
			return
		}
	}
	if err := old.move(ctx, tx); err != nil {
		_ = tx.Cancel(ctx)
		b.failed(ctx, err)
		return
	}
	b.end(ctx, tx, ws, &old)
}

// end ends a transaction in one of the ways there are.
func (b *client) end(ctx context.Context, tx *partition.Transaction, ws messages.WSID, old *oldSystem) {
	var err error
	switch n := b.random.IntN(1000); {
	case n < 30:
		err = tx.Cancel(ctx)
	case n < 33:
		err = tx.Actualize(ctx)
	default:
		if err = tx.Commit(ctx, []byte(b.body())); err == nil {
			b.acked(&acked{
				Partition: tx.Token().Partition, PLogOffset: tx.PLogOffset(), Workspace: ws, WLogOffset: tx.WLogOffset(),
				At: tx.RegisteredAt(), Numbers: tx.Numbers(), Brought: old.brought, Moves: old.moves, Body: b.body(),
			})
		}
	}
	if err != nil {
		b.failed(ctx, err)
	}
}

func (b *client) acked(a *acked) {
	b.journal.write(entry{Acked: a})
	b.counted()
}

// counted counts an acknowledgement.
func (c *child) counted() {
	if n := c.acks.Add(1); n == c.StopAfter {
		c.stop()
	}
}

// failed journals what an error promises: that nothing is left, unless the outcome
// is unknown.
func (b *client) failed(ctx context.Context, err error) {
	b.suffer(ctx, err)
	if errors.Is(err, messages.ErrOutcomeUnknown) {
		return
	}
	b.journal.write(entry{Refused: []string{b.body()}})
	b.explain(ctx, err)
}

// stopWithStore ends the load when the store has closed itself: those who wait for a
// partition to recover would wait as long as their contexts let them.
func (c *child) stopWithStore(ctx context.Context) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if _, err := c.store.Register(ctx, 0); errors.Is(err, storage.ErrClosed) {
			c.stop()
		}
		<-ticker.C
	}
}

// suffer ends the load when the store only refuses.
func (c *child) suffer(ctx context.Context, err error) {
	if c.Suffers && ctx.Err() == nil && tolerated(err) && c.pains.Add(1) > 200 {
		c.stop()
	}
}

// explain journals an error that must not happen, and waits where that is of use.
func (c *child) explain(ctx context.Context, err error) {
	for _, expected := range []error{
		context.DeadlineExceeded, context.Canceled, messages.ErrDeadlineExceeded, messages.ErrFenced, messages.ErrNoTransaction,
		storage.ErrTailFull, messages.ErrExpectedOffset, messages.ErrBackward,
	} {
		if errors.Is(err, expected) {
			return
		}
	}
	switch {
	case errors.Is(err, messages.ErrBusy):
		_ = c.app.Ready(ctx) // it replays its tail after an Actualize
	case c.tolerates == nil || !c.tolerates(err):
		c.journal.write(entry{Trouble: err.Error()})
	}
}
