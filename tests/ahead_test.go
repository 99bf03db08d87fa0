package tests

import (
	"context"
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

func invoiceRow(n messages.Number) messages.Record {
	return messages.Record{ID: messages.RecordID{Seq: seqInvoice, Number: n}, Data: []byte("update")}
}

// updates are the ways in which an event with one invoice number updates a row.
func updates(t *testing.T, d *deployment) map[string]func(messages.Record) error {
	sequencer := must(d.app.SequencerOf(7))(t)
	to := partition.AppendTo{Workspace: 7, Kind: kindShop}
	draft := func(r messages.Record) partition.Draft {
		return partition.Draft{Wanted: []partition.Wanted{{Seq: seqInvoice}}, Records: []partition.DraftRecord{{ID: r.ID, Data: r.Data}}}
	}
	open := func() *partition.Transaction {
		tx := d.open(t, 7)
		must(tx.Next(limit(t), seqInvoice))(t)
		return tx
	}
	execute := func(p *partition.CommandProcessor, err error) error {
		check(t, err)
		_, err = p.Execute(limit(t), messages.Command{Workspace: 7, Kind: kindShop})
		return err
	}
	return map[string]func(messages.Record) error{
		"Append": func(r messages.Record) error {
			_, err := sequencer.Append(limit(t), to, draft(r))
			return err
		},
		"AppendAll": func(r messages.Record) error {
			_, err := sequencer.AppendAll(limit(t), to, []partition.Draft{{}, draft(r), {}})
			return err
		},
		"Commit": func(r messages.Record) error { return open().Commit(limit(t), nil, r) },
		"Write": func(r messages.Record) error {
			tx := open()
			if err := tx.Write(limit(t), nil, r); err != nil {
				return errors.Join(err, tx.Cancel(limit(t)))
			}
			return tx.Flush(limit(t))
		},
		"Event": func(r messages.Record) error {
			tx := open()
			e, err := tx.Event(nil, r)
			if err != nil {
				return errors.Join(err, tx.Cancel(limit(t)))
			}
			check(t, d.store.Append(limit(t), batchOf(e)))
			return tx.Flush(limit(t))
		},
		"command": func(r messages.Record) error {
			return execute(d.app.SpawnCommandProcessor(func(ctx context.Context, c *partition.CommandContext) error {
				c.Update(r.ID, r.Data)
				_, err := c.Next(ctx, seqInvoice)
				return err
			}))
		},
		"command that appends": func(r messages.Record) error {
			return execute(d.app.SpawnAppendProcessor(func(_ context.Context, d *partition.DraftContext) error {
				d.Want(seqInvoice)
				d.Update(r.ID, r.Data)
				return nil
			}))
		},
	}
}

// A row under a number that is still to be given out would meet the new record that gets
// the number, and all after it. Whichever way it is to be written, it is refused, and
// nothing is left of that.
func TestUpdateAheadIsRefused(t *testing.T) {
	s := newSite(t, 1, partition.Settings{})
	d := s.run(t)
	last := messages.Number(0)
	for name, update := range updates(t, d) {
		before := d.register(t, 0)
		err := update(invoiceRow(last + 2))
		got, ok := errors.AsType[*partition.RecordAheadError](err)
		want := partition.RecordAheadError{Workspace: 7, ID: invoiceRow(last + 2).ID, Last: last + 1}
		if !ok || *got != want || !errors.Is(err, partition.ErrRecordAhead) {
			t.Fatalf("%s: got %v, want %v", name, err, &want)
		}
		if after := d.register(t, 0); after != before {
			t.Errorf("%s: the partition stands at %+v, before at %+v", name, after, before)
		}
		if tx := must(commitRecord(limit(t), d.app, 7))(t); tx.Numbers()[0].Number != last+1 {
			t.Errorf("%s: got %v after the refusal, want %d", name, tx.Numbers(), last+1)
		}
		if err := update(invoiceRow(last + 2)); err != nil { // that of its own event
			t.Errorf("%s: %v", name, err)
		}
		last += 2
	}
	d.stop(t)
}

// A store that was written before has such a row: it opens and holds what it held, and
// there is a way on.
func TestRowAheadOfAnOldStore(t *testing.T) {
	for name, flushed := range map[string]bool{"in the tail": false, "flushed": true} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 1, neverFlushed())
			store := s.openStore(t)
			p := storagetest.Take(t, store, 0)
			row := invoiceRow(3).ID
			p.Append(t, storagetest.Spec{Workspace: 7, Create: []messages.SeqID{seqInvoice}}, storagetest.Spec{Workspace: 7, Update: []messages.RecordID{row}})
			if flushed {
				p.FlushAll(t)
			}
			check(t, store.Close(limit(t)))
			check(t, must(bolt.Verify(limit(t), s.dir, verify.Options{}))(t).Err())

			d := s.run(t)
			wantError(t, d.open(t, 7).Commit(limit(t), nil, invoiceRow(3)), messages.ErrRecordAhead)
			must(commitRecord(limit(t), d.app, 7))(t) // 2
			for range 2 {
				_, err := commitRecord(limit(t), d.app, 7)
				if c := wantConflict(t, err, storage.PlaceRecord); c.Record != row {
					t.Errorf("got a conflict of %v, want %v", c.Record, row)
				}
			}
			d.invoice(t, 7, 3) // without a record
			check(t, d.open(t, 7).Commit(limit(t), nil, invoiceRow(3)))
			if tx := must(commitRecord(limit(t), d.app, 7))(t); tx.Numbers()[0].Number != 4 {
				t.Errorf("got %v, want 4", tx.Numbers())
			}
			d.stop(t)

			s.deleteState(t)
			s.look(t, nil)
			check(t, must(bolt.Verify(limit(t), s.dir, verify.Options{}))(t).Err())
		})
	}
}
