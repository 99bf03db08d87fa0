package sequencer

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// moving asks for an event that moves sequences.
func (w *world) moving(ws messages.WSID, kind messages.WSKind, moves ...messages.SequenceNumber) messages.Append {
	m := w.one(ws, kind)
	m.Drafts[0].Moves = moves
	return m
}

// bringing asks for an event that brings numbers along.
func (w *world) bringing(ws messages.WSID, kind messages.WSKind, brought ...messages.SequenceNumber) messages.Append {
	m := w.one(ws, kind)
	m.Drafts[0].Brought = brought
	return m
}

func plain(n messages.Number) messages.SequenceNumber {
	return messages.SequenceNumber{Seq: seqPlain, Number: n}
}

// TestTakenInOrder: of one sequence the numbers brought along come first, then those wanted, then explicit ids, then
// the moves.
func TestTakenInOrder(t *testing.T) {
	w := warm(t, messages.Settings{})
	m := w.one(1, kindWide, seqPlain)
	d := &m.Drafts[0]
	d.Brought, d.Moves = []messages.SequenceNumber{plain(5), plain(8)}, []messages.SequenceNumber{plain(30), plain(40)}
	d.Records = []messages.DraftRecord{{Number: 1, New: true}, {ID: messages.RecordID{Seq: seqPlain, Number: 20}, New: true}}
	m.Drafts = append(m.Drafts, w.draft(seqPlain))
	w.wants(w.append(m), "16/5", "16/8", "16/9", "16/41")
	e := w.log[len(w.log)-2]
	if e.Brought != 2 || !reflect.DeepEqual(e.Moves, d.Moves) || e.Records[0].ID.Number != 8 {
		t.Errorf("got %+v", e)
	}
	w.restart()
	w.settle()
	w.wants(w.append(w.one(1, kindWide, seqPlain)), "16/42")
	for _, back := range []messages.Append{
		w.moving(1, kindWide, plain(42)), w.bringing(1, kindWide, plain(42)), w.bringing(1, kindWide, plain(44), plain(44)),
		w.moving(1, kindWide, plain(44), plain(43)), w.moving(1, kindWide, plain(0)),
	} {
		w.mustRefuse(w.settled(w.append(back)), messages.ErrBackward)
	}
	explicit := w.moving(1, kindWide, plain(60))
	explicit.Drafts[0].Records = []messages.DraftRecord{{ID: messages.RecordID{Seq: seqPlain, Number: 60}, New: true}}
	w.mustRefuse(w.settled(w.append(explicit)), messages.ErrBackward)
	w.wants(w.append(w.one(1, kindWide, seqPlain)), "16/43")
	w.finish()
}

// TestBackwardSaysWhere: the error has all that somebody needs who looks for the mistake.
func TestBackwardSaysWhere(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	for _, c := range []struct{ last, wanted messages.Number }{{99, 99}, {0, 150}, {150, 149}} {
		n := messages.SequenceNumber{Seq: seqBill, Period: 20260501, Number: c.wanted}
		answer := w.settled(w.append(w.moving(1, kindTill, n)))
		want := messages.BackwardError{Workspace: 1, Seq: seqBill, Name: "bill", Period: 20260501, Last: c.last, Wanted: c.wanted}
		if c.last == 0 {
			w.mustAppend(answer)
		} else if e, ok := errors.AsType[*messages.BackwardError](refusalOf(answer)); !ok || *e != want {
			t.Errorf("got %v, want %+v", refusalOf(answer), want)
		}
	}
	w.finish()
}

// TestTakenBeyondTheEnd: above the largest number is an overflow, which consumes nothing; at it the sequence is
// noticed as nearly used.
func TestTakenBeyondTheEnd(t *testing.T) {
	w := warm(t, messages.Settings{})
	narrow := func(n messages.Number) messages.SequenceNumber {
		return messages.SequenceNumber{Seq: seqNarrow, Number: n}
	}
	for _, m := range []messages.Append{w.moving(1, kindWide, narrow(narrowLargest+1)), w.bringing(1, kindWide, narrow(narrowLargest+1))} {
		var e *messages.OverflowError
		if c := w.settled(w.append(m)); !errors.As(refusalOf(c), &e) || e.Seq != seqNarrow || e.Largest != narrowLargest || e.Wanted != 4 {
			t.Errorf("got %v", refusalOf(c))
		}
	}
	endless := messages.SequenceNumber{Seq: messages.SeqOWRecordID, Number: 1<<64 - 1}
	w.mustRefuse(w.settled(w.append(w.moving(1, kindWide, endless))), messages.ErrOverflow)
	wantNearlyUsed(w)
	w.done(w.append(w.moving(1, kindWide, narrow(narrowLargest))))
	wantNearlyUsed(w, messages.NearlyUsed{Workspace: 1, Seq: seqNarrow, Name: "last3", Last: narrowLargest, Largest: narrowLargest})
	w.mustRefuse(w.settled(w.append(w.one(1, kindWide, seqNarrow))), messages.ErrOverflow)
	w.finish()
}

// TestTakenLeavesRoom: one bad number does not end a built-in sequence for good. The sequences of an application end where
// that says.
func TestTakenLeavesRoom(t *testing.T) {
	w := warm(t, messages.Settings{})
	for seq, most := range map[messages.SeqID]messages.Number{
		messages.SeqCRecordID: math.MaxUint64 - 1<<32, messages.SeqOWRecordID: messages.InitialCRecordID - 1 - 1<<32, seqPlain: math.MaxInt64,
	} {
		n := messages.SequenceNumber{Seq: seq, Number: most + 1}
		for _, m := range []messages.Append{w.moving(1, kindWide, n), w.bringing(1, kindWide, n)} {
			var e *messages.OverflowError
			if c := w.settled(w.append(m)); !errors.As(refusalOf(c), &e) || e.Seq != seq || e.Largest != most {
				t.Errorf("%v: got %v, want at most %d", n, refusalOf(c), most)
			}
		}
		n.Number--
		w.done(w.append(w.moving(1, kindWide, n)))
		if seq < messages.FirstApplicationSeq {
			w.wants(w.append(w.one(1, kindWide, seq)), fmt.Sprintf("%d/%d", seq, most+1))
		}
	}
	w.finish()
}

// TestTakenIsTooMany: what is brought along counts as numbers do.
func TestTakenIsTooMany(t *testing.T) {
	w := warm(t, messages.Settings{})
	many := make([]messages.SequenceNumber, messages.MaxEventNumbers)
	for i := range many {
		many[i] = plain(messages.Number(10 + 2*i))
	}
	more := w.bringing(1, kindWide, many...)
	more.Drafts[0].Wanted = []messages.Wanted{{Seq: seqPlain}}
	w.mustRefuse(w.settled(w.appendWrong(more, messages.ErrTooManyNumbers)), messages.ErrTooManyNumbers)
	moves := w.moving(1, kindWide, slices.Concat(many, []messages.SequenceNumber{plain(1 << 40)})...)
	w.mustRefuse(w.settled(w.appendWrong(moves, messages.ErrTooManyNumbers)), messages.ErrTooManyNumbers)
	bytes := func(m messages.Append) int { return AppendBytes(&m) }
	if got := bytes(w.bringing(1, kindWide, many...)); got < numberBytes*len(many) || got != bytes(w.moving(1, kindWide, many...)) {
		t.Errorf("got %d bytes", got)
	}
	if got := w.done(w.append(w.bringing(1, kindWide, many...))); len(got.Numbers) != len(many) {
		t.Errorf("got %d numbers", len(got.Numbers))
	}
	w.done(w.append(w.one(1, kindWide, seqPlain)))
	w.finish()
}

// TestTakenAgain: a repetition brings and moves the same.
func TestTakenAgain(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	first := w.dated(20260630, seqReceipt)
	first.DedupID[0] = 1
	d := &first.Drafts[0]
	d.Brought = []messages.SequenceNumber{{Seq: seqReceipt, Number: 4}}
	d.Moves = []messages.SequenceNumber{{Seq: seqReceipt, Number: 9}, {Seq: seqBill, Period: 20260601, Number: 120}}
	done := w.done(w.append(first))
	w.mustRepeat(w.settled(w.append(first)), done)
	for what, change := range map[string]func(d *messages.Draft){
		"another number":  func(d *messages.Draft) { d.Brought = []messages.SequenceNumber{{Seq: seqReceipt, Number: 3}} },
		"wanted":          func(d *messages.Draft) { d.Brought, d.Wanted[0].Count = nil, 2 },
		"no moves":        func(d *messages.Draft) { d.Moves = nil },
		"moved elsewhere": func(d *messages.Draft) { d.Moves = []messages.SequenceNumber{d.Moves[0], {Seq: seqBill, Number: 121}} },
		"moved another":   func(d *messages.Draft) { d.Moves = []messages.SequenceNumber{d.Moves[0], {Seq: seqRound, Number: 3}} },
		"moved less":      func(d *messages.Draft) { d.Moves = d.Moves[:1] },
		"all is brought": func(d *messages.Draft) {
			d.Brought, d.Wanted = append(d.Brought, messages.SequenceNumber{Seq: seqReceipt, Number: 5}), nil
		},
		"nothing of the kind": func(d *messages.Draft) { d.Brought, d.Moves = nil, nil },
	} {
		again := w.dated(20260630, seqReceipt)
		again.DedupID = first.DedupID
		again.Drafts[0].Body, again.Drafts[0].Brought, again.Drafts[0].Moves = d.Body, d.Brought, d.Moves
		change(&again.Drafts[0])
		if c := w.settled(w.append(again)); !errors.Is(refusalOf(c), messages.ErrDedupMismatch) {
			t.Errorf("%s: got %T, %v", what, c.reply, refusalOf(c))
		}
	}
	w.finish()
}

// TestTakenInOldPeriods: old periods are loaded to be moved, closed ones are refused, and so are those that the same draft
// closes.
func TestTakenInOldPeriods(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	in := func(seq messages.SeqID, period calendar.Date, n messages.Number) messages.SequenceNumber {
		return messages.SequenceNumber{Seq: seq, Period: period, Number: n}
	}
	bills := w.moving(1, kindTill)
	for month := calendar.Date(1); month <= 12; month++ {
		bills.Drafts[0].Moves = append(bills.Drafts[0].Moves, in(seqBill, 20250001+100*month, 200+messages.Number(month)))
	}
	w.done(w.append(bills))
	w.restart()
	w.settle()
	old := w.one(1, kindTill, seqBill)
	old.Drafts[0].Date = 20250115
	w.wants(w.append(old), "22/2025-01-01/202")
	w.mustRefuse(w.settled(w.append(w.moving(1, kindTill, in(seqBill, 20250301, 203)))), messages.ErrBackward)
	w.done(w.append(w.moving(1, kindTill, in(seqBill, 20250301, 204))))

	w.done(w.append(w.moving(1, kindTill, in(seqReceipt, 20260627, 5), in(seqReceipt, 20260630, 5))))
	closing := w.moving(1, kindTill, in(seqReceipt, 20260701, 5), in(seqReceipt, 20260627, 9))
	w.mustRefuse(w.settled(w.append(closing)), messages.ErrBusinessDate)
	w.done(w.append(w.moving(1, kindTill, in(seqReceipt, 20260627, 9), in(seqReceipt, 20260701, 5))))
	w.mustRefuse(w.settled(w.append(w.moving(1, kindTill, in(seqReceipt, 20260627, 10)))), messages.ErrBusinessDate)
	w.mustRefuse(w.settled(w.append(w.moving(1, kindTill, in(seqReceipt, 20260702, 1)))), messages.ErrBusinessDate)
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-06-30/6")
	w.finish()
}

// TestOwnerTakesOver: an owner that counts itself moves and brings numbers of its transaction's periods.
func TestOwnerTakesOver(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	o := counting(w, 1, kindTill)
	for n, want := range map[messages.SequenceNumber]error{
		{Seq: seqReceipt, Period: 20260629, Number: 9}:  messages.ErrDraft,
		{Seq: messages.SeqWLogOffset, Number: 9}:        messages.ErrUnknownSequence,
		{Seq: seqPlain, Number: 9}:                      messages.ErrUnknownSequence,
		{Seq: seqBill, Number: 99}:                      messages.ErrBackward,
		{Seq: seqRound, Number: roundLargest + 1}:       messages.ErrOverflow,
		{Seq: seqReceipt, Period: 20260630, Number: 12}: nil,
		{Seq: seqBill, Number: 100}:                     nil,
	} {
		before := append([]messages.Number(nil), o.counts.Last()...)
		if _, err := o.counts.Move(n); !errors.Is(err, want) {
			t.Errorf("%v: got %v, want %v", n, err, want)
		} else if want != nil && !reflect.DeepEqual(before, o.counts.Last()) {
			t.Errorf("%v: got %v, want %v as before", n, o.counts.Last(), before)
		}
	}
	if n, err := o.counts.Bring(messages.SequenceNumber{Seq: seqReceipt, Number: 14}); err != nil || n.Period != 20260630 {
		t.Errorf("got %v, %v", n, err)
	}
	if n, err := o.counts.Next(messages.Wanted{Seq: seqReceipt}); err != nil || n.Number != 15 {
		t.Errorf("got %v, %v", n, err)
	}
	w.cancel(o)
	w.settle()
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-06-30/1")
	w.finish()
}

// TestTakenKeyIsBrought: somebody else has the row of a number that is brought along. Those behind it in the batch need
// other numbers, whatever the sequence was moved to before.
func TestTakenKeyIsBrought(t *testing.T) {
	w := warm(t, messages.Settings{})
	bring := func(n messages.Number) messages.Append {
		m := w.bringing(1, kindWide, plain(n))
		m.Drafts[0].Records = []messages.DraftRecord{{New: true}}
		return m
	}
	w.taken[taken{1, seqPlain, 5}] = true
	next := w.one(1, kindWide, seqPlain)
	next.Drafts[0].Records = []messages.DraftRecord{{New: true}}
	calls := w.batched(bring(5), bring(9), next)
	w.mustRefuse(w.settled(calls[0]), errConflict)
	w.wants(calls[1], "16/9")
	w.wants(calls[2], "16/10")
	w.finish()
}
