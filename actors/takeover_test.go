package actors_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/partita-go/partita/messages"
)

func invoice(n messages.Number) messages.SequenceNumber {
	return messages.SequenceNumber{Seq: invoices, Number: n}
}

// A transaction brings numbers along first and moves last; what comes too late is refused and changes nothing.
func TestTransactionTakesOver(t *testing.T) {
	r := readyRig(t, setup{})
	tx := r.start(7)
	r.check(tx.Bring(r.ctx, invoice(5)))
	wants(t, "back", tx.Bring(r.ctx, invoice(5)), messages.ErrBackward)
	r.check(tx.Bring(r.ctx, invoice(9)))
	if n, err := tx.Next(r.ctx, invoices); n != 10 || err != nil {
		t.Errorf("got %d, %v, want 10", n, err)
	}
	wants(t, "brought behind a number", tx.Bring(r.ctx, invoice(20)), messages.ErrDraft)
	wants(t, "moved back", tx.Move(r.ctx, invoice(10)), messages.ErrBackward)
	wants(t, "above the end", tx.Move(r.ctx, messages.SequenceNumber{Seq: messages.SeqOWRecordID, Number: 1<<64 - 1}), messages.ErrOverflow)
	wants(t, "unknown", tx.Move(r.ctx, messages.SequenceNumber{Seq: 99, Number: 7}), messages.ErrUnknownSequence)
	wants(t, "a period", tx.Move(r.ctx, messages.SequenceNumber{Seq: invoices, Period: 20260101, Number: 70}), messages.ErrDraft)
	r.check(tx.Raise(r.ctx, messages.RecordID{Seq: invoices, Number: 15}))
	r.check(tx.Move(r.ctx, invoice(30)))
	wants(t, "a number behind a move", errorOf(tx.Next(r.ctx, invoices)), messages.ErrDraft)
	wants(t, "an id behind a move", tx.Raise(r.ctx, messages.RecordID{Seq: invoices, Number: 31}), messages.ErrDraft)
	r.check(tx.Move(r.ctx, invoice(40)))
	r.check(errorOf(tx.Next(r.ctx, receipts)))
	r.check(tx.Commit(r.ctx, nil, messages.Record{ID: messages.RecordID{Seq: invoices, Number: 15}, New: true}))
	e := r.log(0)[0]
	if e.Brought != 2 || len(e.Numbers) != 4 || e.Numbers[0] != invoice(5) || !slices.Equal(e.Moves, []messages.SequenceNumber{invoice(30), invoice(40)}) {
		t.Errorf("got %+v", e)
	}
	r.again()
	r.ready()
	if n := r.append(7); n != 41 {
		t.Errorf("after a restart: got %d, want 41", n)
	}
	tx = r.start(7)
	r.check(tx.Move(r.ctx, invoice(50)))
	r.check(tx.Cancel(r.ctx))
	wants(t, "cancelled", tx.Move(r.ctx, invoice(60)), messages.ErrNoTransaction)
	wants(t, "cancelled", tx.Bring(r.ctx, invoice(60)), messages.ErrNoTransaction)
	if n := r.append(7); n != 42 {
		t.Errorf("after a transaction that was cancelled: got %d, want 42", n)
	}
}

func errorOf(_ messages.Number, err error) error { return err }

// What a draft brings along and moves is the caller's again when the call returns, whatever it returns.
func TestTakenOverIsTheCallersAgain(t *testing.T) {
	r := readyRig(t, setup{})
	random := rand.New(rand.NewPCG(1, 2))
	patient := to(7)
	patient.Wait = true
	var all sync.WaitGroup
	for n := messages.Number(1); n <= 300; n++ {
		draft := messages.Draft{
			Body: []byte{byte(n), byte(n >> 8)}, Brought: []messages.SequenceNumber{invoice(10 * n)}, Moves: []messages.SequenceNumber{invoice(10*n + 1)},
		}
		ctx, cancel := context.WithCancel(r.ctx)
		if random.IntN(2) == 0 {
			all.Go(cancel)
		}
		_, err := r.of(7).Append(ctx, patient, draft)
		cancel()
		draft.Brought[0].Number, draft.Moves[0].Number = 1<<50, 1<<51
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	all.Wait()
	r.append(7) // the last
	log := r.log(0)
	for _, e := range log[:len(log)-1] {
		n := messages.Number(e.Body[0]) + messages.Number(e.Body[1])<<8
		if e.Numbers[0] != invoice(10*n) || e.Moves[0] != invoice(10*n+1) {
			t.Fatalf("the event of append %d has %+v", n, e)
		}
	}
}

// Each of several drafts counts on those before it, and gets its own numbers.
func TestAppendAllTakesOver(t *testing.T) {
	r := readyRig(t, setup{})
	all, err := r.of(7).AppendAll(r.ctx, to(7), []messages.Draft{
		{Brought: []messages.SequenceNumber{invoice(3), invoice(7)}},
		{Wanted: []messages.Wanted{{Seq: invoices}}, Moves: []messages.SequenceNumber{invoice(20)}},
		{Brought: []messages.SequenceNumber{invoice(25)}, Wanted: []messages.Wanted{{Seq: invoices}}},
	})
	r.check(err)
	for i, want := range [][]messages.SequenceNumber{{invoice(3), invoice(7)}, {invoice(8)}, {invoice(25), invoice(26)}} {
		if !slices.Equal(all[i].Numbers, want) {
			t.Errorf("draft %d: got %v, want %v", i, all[i].Numbers, want)
		}
	}
	_, err = r.of(7).AppendAll(r.ctx, to(7), []messages.Draft{{Moves: []messages.SequenceNumber{invoice(40)}}, {Brought: []messages.SequenceNumber{invoice(40)}}})
	wants(t, "the second goes back", err, messages.ErrBackward)
	if n := r.append(7); n != 27 {
		t.Errorf("got %d, want 27", n)
	}
}
