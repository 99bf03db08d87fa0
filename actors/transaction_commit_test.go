package actors_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// appendOutcome is one way in which an append can end.
type appendOutcome struct {
	do storagetest.Effect
	// want is the answer of Commit.
	want error
	// landed says that the event is in the log.
	landed bool
	// actualizes says that the tail is replayed.
	actualizes bool
}

func appendOutcomes() map[string]appendOutcome {
	conflict := func(p storage.Place) storagetest.Effect {
		return storagetest.Fail(&storage.ConflictError{Place: p, PLogOffset: 2, Workspace: 7})
	}
	fail := func(err error) storagetest.Effect {
		return storagetest.Fail(fmt.Errorf("%w: injected", err))
	}
	return map[string]appendOutcome{
		"WLog conflict":        {do: conflict(storage.PlaceWLog), want: storage.ErrConflict},
		"record conflict":      {do: conflict(storage.PlaceRecord), want: storage.ErrConflict},
		"PLog conflict":        {do: conflict(storage.PlacePLog), want: storage.ErrConflict, actualizes: true},
		"log conflict":         {do: conflict(storage.PlaceLog), want: storage.ErrConflict, actualizes: true},
		"invalid event":        {do: fail(storage.ErrInvalidEvent), want: storage.ErrInvalidEvent},
		"tail full":            {do: fail(storage.ErrTailFull), want: storage.ErrTailFull},
		"full":                 {do: storagetest.Full(), want: storage.ErrFull},
		"out of order":         {do: fail(storage.ErrOutOfOrder), want: storage.ErrOutOfOrder, actualizes: true},
		"time fell":            {do: fail(storage.ErrTimeFell), want: storage.ErrTimeFell, actualizes: true},
		"fenced":               {do: fail(messages.ErrFenced), want: messages.ErrFenced, actualizes: true},
		"something else":       {do: storagetest.Fail(errors.New("injected")), actualizes: true},
		"unknown, landed":      {do: storagetest.UnknownDone(), landed: true, actualizes: true},
		"unknown, not written": {do: storagetest.UnknownNotDone(), want: messages.ErrFenced, actualizes: true},
	}
}

// After every outcome the answer is what the log says, and the numbers go on
// without a gap.
func TestTransactionCommitOutcomes(t *testing.T) {
	for name, c := range appendOutcomes() {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			r.commit(7)
			r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: c.do, Times: 1})
			tx := r.start(7)
			n, err := tx.Next(r.ctx, invoices)
			r.check(err)
			id := messages.RecordID{Seq: invoices, Number: n}
			err = tx.Commit(r.ctx, []byte("the one"), messages.Record{ID: id, New: true, Data: []byte("x")})
			switch {
			case c.want != nil:
				wants(t, "commit", err, c.want)
			case (err == nil) != c.landed:
				t.Fatalf("got error %v, landed %v", err, c.landed)
			}
			if errors.Is(err, messages.ErrOutcomeUnknown) && c.landed {
				t.Errorf("the log could tell, got %v", err)
			}
			r.endsWell(c)
		})
	}
}

// endsWell checks what a Commit has left.
func (r *rig) endsWell(c appendOutcome) {
	r.t.Helper()
	r.getsThrough(7)
	want := 1
	if c.landed {
		want = 2
	}
	if got := len(r.log(0)); got != want {
		r.t.Fatalf("got %d events, want %d", got, want)
	}
	if got := r.partitions[0].Status().Actualizations; got != 1+uint64(boolToInt(c.actualizes)) {
		r.t.Errorf("got %d actualizations, actualizes is %v", got, c.actualizes)
	}
	if n := r.commit(7); n != messages.Number(want+1) {
		r.t.Errorf("got number %d, want %d", n, want+1)
	}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Write, and then what its documentation says: Cancel where nothing was left,
// else ErrWriteBegun and Actualize.
func TestTransactionWriteThenCancel(t *testing.T) {
	for name, c := range appendOutcomes() {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			r.commit(7)
			r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: c.do, Times: 1})
			tx := r.start(7)
			_, err := tx.Next(r.ctx, invoices)
			r.check(err)
			if tx.Write(r.ctx, nil) == nil {
				t.Fatal("the fault did not strike")
			}
			err = tx.Cancel(r.ctx)
			if c.actualizes {
				wants(t, "cancel", err, actors.ErrWriteBegun)
				r.check(tx.Actualize(r.ctx))
			} else {
				r.check(err)
			}
			r.endsWell(c)
		})
	}
}

// A write that was refused can be tried again in the same transaction.
func TestTransactionWriteAgainAfterARefusal(t *testing.T) {
	r := readyRig(t, setup{})
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Full(), Times: 1})
	tx := r.start(7)
	_, err := tx.Next(r.ctx, invoices)
	r.check(err)
	wants(t, "write", tx.Write(r.ctx, nil), storage.ErrFull)
	_, err = tx.Next(r.ctx, invoices)
	r.check(err)
	r.check(tx.Write(r.ctx, nil))
	r.check(tx.Flush(r.ctx))
	if n := r.commit(7); n != 3 {
		t.Errorf("got number %d, want 3", n)
	}
}

// The log cannot tell, since the partition fails: then the outcome stays unknown,
// and it is wholly there.
func TestTransactionOutcomeStaysUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		op storagetest.Op
		do storagetest.Effect
	}{
		"no epoch":     {storagetest.OpTakeEpoch, storagetest.Fail(storage.ErrClosed)},
		"no tail":      {storagetest.OpTail, storagetest.Fail(&storage.DamagedError{PLogOffset: 1, Cause: errors.New("bad")})},
		"log unread":   {storagetest.OpPLog, storagetest.Fail(errors.New("injected"))},
		"log breaking": {storagetest.OpPLog, storagetest.Break(0, errors.New("injected"))},
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.UnknownDone(), Times: 1})
			r.store.Plant(storagetest.Fault{Op: c.op, Do: c.do})
			tx := r.start(7)
			wants(t, "commit", tx.Commit(r.ctx, nil), messages.ErrOutcomeUnknown)
			if n := len(r.log(0)); n != 1 {
				t.Errorf("got %d events", n)
			}
		})
	}
}

// Durable is durable: an answer to Flush that never comes changes nothing.
func TestTransactionCommitIsTrueWhenThePartitionIsGone(t *testing.T) {
	r := readyRig(t, setup{})
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.HoldAnswer(gate), Times: 1})
	tx := r.start(7)
	result := make(chan error, 1)
	go func() { result <- tx.Commit(r.ctx, nil) }()
	r.arrives(gate)
	system.Root.Stop(r.partitions[0].PID())
	next(t, r.partitions[0].Terminated())
	gate.Release()
	wants(t, "commit", next(t, result), nil)
	r.again()
	r.ready()
	if n := r.commit(7); n != 1 || len(r.log(0)) != 2 {
		t.Errorf("got number %d, %d events", n, len(r.log(0)))
	}
}
