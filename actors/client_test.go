package actors_test

import (
	"context"
	"errors"
	"testing"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

func TestClientGivesNumbersFromTheirInitialValues(t *testing.T) {
	r := readyRig(t, setup{})
	for round := range messages.Number(3) {
		tx := r.start(7)
		for _, want := range []messages.SequenceNumber{
			{Seq: invoices, Number: 2*round + 1},
			{Seq: receipts, Number: 1000 + round},
			{Seq: invoices, Number: 2*round + 2},
			{Seq: messages.SeqCRecordID, Number: messages.InitialCRecordID + round},
			{Seq: messages.SeqOWRecordID, Number: messages.InitialOWRecordID + round},
		} {
			got, err := tx.Next(r.ctx, want.Seq)
			r.check(err)
			if got != want.Number {
				t.Errorf("round %d, sequence %d: got %d, want %d", round, want.Seq, got, want.Number)
			}
		}
		if tx.WLogOffset() != messages.WLogOffset(round+1) || tx.PLogOffset() != messages.PLogOffset(round+1) {
			t.Errorf("round %d: got offsets %d and %d", round, tx.PLogOffset(), tx.WLogOffset())
		}
		r.check(tx.Commit(r.ctx, nil))
	}
}

// The place of a cancelled transaction is given to another one, whose event is not the cancelled one's.
func TestFlushAfterCancel(t *testing.T) {
	r := readyRig(t, setup{})
	tx := r.start(7)
	r.check(tx.Cancel(r.ctx))
	r.commit(7)
	if at := messages.PLogOffset(len(r.log(0))); at != tx.PLogOffset() {
		t.Fatalf("the event of another one is at %d, want %d", at, tx.PLogOffset())
	}
	wants(t, "cancelled", tx.Flush(r.ctx), messages.ErrNoTransaction)

	ctx, cancel := context.WithCancel(r.ctx)
	lapsed, err := r.of(7).Start(ctx, shop, 7)
	r.check(err)
	cancel()
	// The end of the context may have ended the transaction by now, or not yet.
	if _, err = lapsed.Next(ctx, invoices); !errors.Is(err, context.Canceled) && !errors.Is(err, messages.ErrNoTransaction) {
		t.Fatalf("next: got error %v, want %v or %v", err, context.Canceled, messages.ErrNoTransaction)
	}
	r.commit(7)
	wants(t, "lapsed", lapsed.Flush(r.ctx), messages.ErrNoTransaction)
}

func TestClientCancelGivesNumbersBack(t *testing.T) {
	r := readyRig(t, setup{})
	tx := r.start(7)
	_, err := tx.Next(r.ctx, invoices)
	r.check(err)
	r.check(tx.Cancel(r.ctx))
	r.check(tx.Cancel(r.ctx)) // again is harmless
	if n := r.commit(7); n != 1 {
		t.Errorf("got number %d, want 1", n)
	}
}

func TestClientFlushWithoutNextAdvancesTheOffset(t *testing.T) {
	r := readyRig(t, setup{})
	for want := messages.PLogOffset(1); want <= 3; want++ {
		tx := r.start(7)
		if tx.PLogOffset() != want {
			t.Fatalf("got offset %d, want %d", tx.PLogOffset(), want)
		}
		r.check(tx.Write(r.ctx, nil))
		r.check(tx.Flush(r.ctx))
	}
}

// What a Start cannot be granted for, and what it leaves: nothing.
func TestClientStartRefused(t *testing.T) {
	r := readyRig(t, setup{partitions: 2})
	r.commit(2)
	for name, c := range map[string]struct {
		kind messages.WSKind
		ws   messages.WSID
		want error
	}{
		"unknown kind":      {99, 2, messages.ErrUnknownKind},
		"no kind":           {0, 2, messages.ErrUnknownKind},
		"wrong partition":   {shop, 3, messages.ErrWrongPartition},
		"workspace is shop": {site, 2, messages.ErrKindMismatch},
	} {
		_, err := r.sequencers[0].Start(r.ctx, c.kind, c.ws)
		wants(t, name, err, c.want)
		r.check(r.start(2).Cancel(r.ctx))
	}
}

func TestClientNextRefusedLeavesTheTransactionOpen(t *testing.T) {
	r := readyRig(t, setup{})
	tx := r.start(7)
	for name, seq := range map[string]messages.SeqID{
		"WLog offset": messages.SeqWLogOffset, "unknown": 99, "zero": 0, "of another kind": posts,
	} {
		_, err := tx.Next(r.ctx, seq)
		wants(t, name, err, messages.ErrUnknownSequence)
	}
	for name, c := range map[string]struct {
		id   messages.RecordID
		want error
	}{
		"unknown":  {messages.RecordID{Seq: 99, Number: 5}, messages.ErrUnknownSequence},
		"too high": {messages.RecordID{Seq: invoices, Number: 1<<64 - 1}, messages.ErrExplicitID},
	} {
		wants(t, name, tx.Raise(r.ctx, c.id), c.want)
	}
	n, err := tx.Next(r.ctx, invoices)
	r.check(err)
	if n != 1 {
		t.Errorf("got %d, want 1: a refusal consumed a number", n)
	}
	r.check(tx.Commit(r.ctx, nil))
}

func TestClientRaise(t *testing.T) {
	r := readyRig(t, setup{})
	for _, c := range []struct {
		raise, next messages.Number
	}{
		{raise: 500, next: 1000},  // below the initial value: nothing changes
		{raise: 1500, next: 1501}, // the sequence goes on above it
		{raise: 1400, next: 1502}, // below what was given out
	} {
		tx := r.start(7)
		id := messages.RecordID{Seq: receipts, Number: c.raise}
		r.check(tx.Raise(r.ctx, id))
		n, err := tx.Next(r.ctx, receipts)
		r.check(err)
		if n != c.next {
			t.Errorf("after raising to %d: got %d, want %d", c.raise, n, c.next)
		}
		r.check(tx.Commit(r.ctx, nil, messages.Record{ID: id, New: true}))
	}
	r.again()
	r.ready()
	tx := r.start(7)
	n, err := tx.Next(r.ctx, receipts)
	r.check(err)
	if n != 1503 {
		t.Errorf("after a restart: got %d, want 1503", n)
	}
	r.check(tx.Cancel(r.ctx))
}

// step is one call on a transaction.
type step struct {
	name string
	do   func(context.Context, *actors.Transaction) error
	want error
}

// row is a way through a transaction, and how often the tail must be replayed.
type row struct {
	actualizations int
	steps          []step
}

var (
	doNext  = func(ctx context.Context, tx *actors.Transaction) error { _, err := tx.Next(ctx, invoices); return err }
	doRaise = func(ctx context.Context, tx *actors.Transaction) error {
		return tx.Raise(ctx, messages.RecordID{Seq: invoices})
	}
	doEvent     = func(ctx context.Context, tx *actors.Transaction) error { _, err := tx.Event(nil); return err }
	doWrite     = func(ctx context.Context, tx *actors.Transaction) error { return tx.Write(ctx, nil) }
	doCommit    = func(ctx context.Context, tx *actors.Transaction) error { return tx.Commit(ctx, nil) }
	doFlush     = func(ctx context.Context, tx *actors.Transaction) error { return tx.Flush(ctx) }
	doCancel    = func(ctx context.Context, tx *actors.Transaction) error { return tx.Cancel(ctx) }
	doActualize = func(ctx context.Context, tx *actors.Transaction) error { return tx.Actualize(ctx) }
)

// The semantic table: what follows what, and what the answer to wrong use is.
// After each row another transaction gets through.
func TestClientTransactionTable(t *testing.T) {
	ended, begun, fenced := messages.ErrNoTransaction, actors.ErrWriteBegun, messages.ErrFenced
	for name, c := range map[string]row{
		"commit": {0, []step{{"commit", doCommit, nil}, {"commit", doCommit, ended}, {"next", doNext, ended}, {"raise", doRaise, ended}, {"cancel", doCancel, nil}, {"write", doWrite, ended}}},
		"write, flush": {0, []step{
			{"next", doNext, nil},
			{"write", doWrite, nil},
			{"next", doNext, begun},
			{"raise", doRaise, begun},
			{"write", doWrite, begun},
			{"event", doEvent, begun},
			{"cancel", doCancel, begun},
			{"flush", doFlush, nil},
			{"next", doNext, ended},
			{"flush again", doFlush, nil},
			{"actualize", doActualize, ended},
			{"flush again", doFlush, nil},
		}},
		"commit after write": {0, []step{{"write", doWrite, nil}, {"commit", doCommit, begun}, {"flush", doFlush, nil}}},
		"commit after event": {1, []step{{"event", doEvent, nil}, {"commit", doCommit, begun}, {"actualize", doActualize, nil}}},
		"event, actualize": {1, []step{
			{"event", doEvent, nil},
			{"cancel", doCancel, begun},
			{"actualize", doActualize, nil},
			{"next", doNext, ended},
			{"cancel", doCancel, nil},
			{"actualize again", doActualize, nil},
			{"flush", doFlush, fenced},
		}},
		"write, actualize": {1, []step{{"write", doWrite, nil}, {"actualize", doActualize, nil}, {"flush: the log has it", doFlush, nil}}},
		"cancel":           {0, []step{{"next", doNext, nil}, {"cancel", doCancel, nil}, {"cancel", doCancel, nil}, {"next", doNext, ended}, {"write", doWrite, ended}, {"commit", doCommit, ended}}},
		"actualize unused": {1, []step{{"actualize", doActualize, nil}, {"commit", doCommit, ended}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			tx := r.start(7)
			for _, s := range c.steps {
				wants(t, s.name, s.do(r.ctx, tx), s.want)
			}
			r.getsThrough(7)
			if n := int(r.partitions[0].Status().Actualizations) - 1; n != c.actualizations {
				t.Errorf("got %d actualizations, want %d", n, c.actualizations)
			}
		})
	}
}

// getsThrough opens and cancels a transaction, waiting as long as the partition
// actualizes. No timer helps: the clock stands still.
func (r *rig) getsThrough(ws messages.WSID) {
	r.t.Helper()
	for {
		tx, err := r.of(ws).Start(r.ctx, shop, ws)
		var busy *messages.BusyError
		if errors.As(err, &busy) && busy.Reason == messages.BusyActualizing {
			r.await(int(messages.PartitionOf(ws, r.setup.partitions)), messages.StateNormal)
			continue
		}
		r.check(err)
		r.check(tx.Cancel(r.ctx))
		return
	}
}

// Another's token is refused, whatever is done with it, and the open transaction
// stays as it was.
func TestClientForeignToken(t *testing.T) {
	r := readyRig(t, setup{partitions: 2})
	tx := r.start(2)
	_, err := tx.Next(r.ctx, invoices)
	r.check(err)
	for name, change := range map[string]func(*messages.Token){
		"serial":    func(k *messages.Token) { k.Serial++ },
		"secret":    func(k *messages.Token) { k.Secret++ },
		"forged":    func(k *messages.Token) { *k = messages.Token{Partition: 0, Epoch: 1, PLogOffset: 1, Serial: 1} },
		"offset":    func(k *messages.Token) { k.PLogOffset++ },
		"partition": func(k *messages.Token) { k.Partition++ },
		"epoch":     func(k *messages.Token) { k.Epoch++ },
	} {
		token := tx.Token()
		change(&token)
		for _, m := range []messages.PartitionMessage{
			&messages.Next{Token: token, Seq: invoices},
			&messages.Raise{Token: token, ID: messages.RecordID{Seq: invoices, Number: 100}},
			&messages.Cancel{Token: token},
			&messages.Actualize{Token: token},
			&messages.Flush{Token: token},
		} {
			refused, ok := r.ask(0, m).(*messages.Refused)
			if !ok || (!errors.Is(refused.Err, messages.ErrNoTransaction) && !errors.Is(refused.Err, messages.ErrFenced)) {
				t.Errorf("%s, %T: got %+v", name, m, refused)
			}
		}
	}
	n, err := tx.Next(r.ctx, invoices)
	r.check(err)
	if n != 2 {
		t.Errorf("got %d, want 2", n)
	}
	r.check(tx.Commit(r.ctx, nil))
}

// A Flush without a write is wrong use that nobody can see. The log puts it right.
func TestClientFlushWithoutAWriteIsPutRight(t *testing.T) {
	r := readyRig(t, setup{})
	tx := r.start(7)
	_, err := tx.Next(r.ctx, invoices)
	r.check(err)
	r.check(tx.Flush(r.ctx))
	tx = r.start(7)
	if err := tx.Commit(r.ctx, nil); err == nil {
		t.Fatal("an event was written behind a hole")
	}
	r.await(0, messages.StateInitializing)
	r.await(0, messages.StateNormal)
	if n := r.commit(7); n != 1 {
		t.Errorf("got number %d, want 1", n)
	}
}
