package rows

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/partita-go/partita/bench/internal/audit"
	"github.com/partita-go/partita/bench/internal/event"
	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// partitaReading is a row of partita whose feed of all partitions is followed. Its
// callers may pause before they append.
type partitaReading struct {
	*partita
	pauses []pauses
}

func newPartitaReading(sh shape, longest time.Duration, s measure.Settings) *partitaReading {
	return &partitaReading{partita: newPartita(sh, s), pauses: newPauses(s.Callers, longest)}
}

func (p *partitaReading) Do(ctx context.Context, caller int) error {
	if err := p.pauses[caller].wait(ctx); err != nil {
		return err
	}
	return p.partita.Do(ctx, caller)
}

// Follow follows while something is written, and then reads the rest.
func (p *partitaReading) Follow(ctx, writing context.Context, _ int, see func(audit.Event) error) error {
	feed, err := p.app.Reader().Feed(ctx, partition.Cursor{})
	if err != nil {
		return err
	}
	if err := seeAll(feed.Follow(writing), see); writing.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return seeAll(feed.Events(ctx), see)
}

func seeAll(events iter.Seq2[messages.Event, error], see func(audit.Event) error) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		seen := audit.Event{Log: int(e.Partition), Position: audit.Position{int64(e.PLogOffset)}}
		if seen.Writer, seen.Number, err = event.MadeBy(e.Body); err != nil {
			return err
		}
		if err := see(seen); err != nil {
			return err
		}
	}
	return nil
}

func (p *partitaReading) Note() string {
	return p.partita.Note() + "; readers follow the feed of all partitions; a pause comes before the append"
}

// partitaHeld is partitaReading with transactions that take their numbers first, and hold
// their partition while they pause.
type partitaHeld struct{ *partitaReading }

func (p partitaHeld) Do(ctx context.Context, caller int) error {
	ws := p.callers[caller].next()
	sequencer, err := p.app.SequencerOf(messages.WSID(ws))
	if err != nil {
		return err
	}
	var tx *partition.Transaction
	err = whileBusy(ctx, func() error {
		tx, err = sequencer.StartWaiting(ctx, kindTenant, messages.WSID(ws))
		return err
	})
	if err != nil {
		return err
	}
	if err := p.finish(ctx, tx, caller); err != nil {
		return err
	}
	return p.ledger.Acknowledge(ws, uint64(tx.WLogOffset()))
}

// finish takes the numbers, pauses and commits. What it leaves open when it fails is ended
// by the partition.
func (p partitaHeld) finish(ctx context.Context, tx *partition.Transaction, caller int) error {
	c := &p.callers[caller]
	var records [event.Records]messages.Record
	for i := range records {
		number, err := tx.Next(ctx, messages.SeqCRecordID)
		if err != nil {
			return err
		}
		records[i] = messages.Record{ID: messages.RecordID{Seq: messages.SeqCRecordID, Number: number}, New: true, Data: c.records[i].Data}
	}
	if _, err := tx.Next(ctx, seqOrder); err != nil {
		return err
	}
	if err := p.pauses[caller].wait(ctx); err != nil {
		return err
	}
	return tx.Commit(ctx, c.draft.Body, records[:]...)
}

func (p partitaHeld) Note() string {
	return fmt.Sprintf("%s; readers follow the feed of all partitions; a pause comes between Start, with its numbers, and Commit", p.partita.Note())
}
