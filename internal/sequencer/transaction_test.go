package sequencer

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

func TestInitialValues(t *testing.T) {
	for _, test := range []struct {
		kind messages.WSKind
		seq  messages.SeqID
		want messages.Number
	}{
		{kindBare, messages.SeqCRecordID, 322685000131072},
		{kindBare, messages.SeqOWRecordID, 322680000131072},
		{kindWide, seqPlain, 1},
		{kindWide, seqFrom, 100},
		{kindWide, seqNarrow, math.MaxUint64 - 2},
		{kindOther, seqPlain, 10},
		{kindOther, seqOther, 5},
	} {
		w := up(t, messages.Settings{})
		o := w.begun(1, test.kind)
		for i := range messages.Number(3) {
			if got := w.given(w.next(o, test.seq)); got != test.want+i {
				t.Errorf("kind %d, sequence %d: got %d, want %d", test.kind, test.seq, got, test.want+i)
			}
		}
		if o.wlogOffset != 1 || o.token.PLogOffset != 1 || o.token.Epoch != 1 {
			t.Errorf("first event: got %v, WLog offset %d", o.token, o.wlogOffset)
		}
		w.commit(o)
		w.finish()
	}
}

func TestOverflow(t *testing.T) {
	w := up(t, messages.Settings{})
	o := w.begun(1, kindWide)
	for range 3 {
		w.given(w.next(o, seqNarrow))
	}
	for range 2 {
		w.mustRefuse(w.next(o, seqNarrow), messages.ErrOverflow)
	}
	w.given(w.next(o, seqPlain))
	w.commit(o)
	w.mustRefuse(w.next(w.begun(1, kindWide), seqNarrow), messages.ErrOverflow)
	w.finish()
}

// TestOWRecordIDEndsBelowCRecordID: an id alone says which of the two it is.
func TestOWRecordIDEndsBelowCRecordID(t *testing.T) {
	w := up(t, messages.Settings{})
	last := messages.InitialCRecordID - 1
	w.seqData[1] = lasts{kindBare, map[messages.SeqID]messages.Number{
		messages.SeqWLogOffset: 1, messages.SeqOWRecordID: last - 1,
	}}
	o := w.request(messages.Start{Workspace: 1, Kind: kindBare})
	// The log of this world knows nothing of the stored numbers.
	w.truth[1] = w.seqData[1]
	w.settle()
	if got := w.given(w.next(o, messages.SeqOWRecordID)); got != last {
		t.Fatalf("got %d, want %d", got, last)
	}
	w.mustRefuse(w.next(o, messages.SeqOWRecordID), messages.ErrOverflow)
}

// TestWLogOffsetOverflow: a workspace whose log is full cannot have a transaction.
func TestWLogOffsetOverflow(t *testing.T) {
	w := up(t, messages.Settings{})
	w.seqData[1] = lasts{kindBare, map[messages.SeqID]messages.Number{messages.SeqWLogOffset: math.MaxUint64}}
	w.truth[1] = w.seqData[1]
	o := w.request(messages.Start{Workspace: 1, Kind: kindBare})
	w.settle()
	w.mustRefuse(o.start, messages.ErrOverflow)
	w.event(3, kindBare)
}

func TestRaise(t *testing.T) {
	const initial = messages.InitialCRecordID
	for _, test := range []struct {
		name string
		id   messages.RecordID
		next messages.Number
		want error
	}{
		{"low, of a singleton", messages.RecordID{Seq: messages.SeqCRecordID, Number: 65536}, initial + 1, nil},
		{"just below the initial value", messages.RecordID{Seq: messages.SeqCRecordID, Number: initial - 1}, initial + 1, nil},
		{"given already", messages.RecordID{Seq: messages.SeqCRecordID, Number: initial}, initial + 1, nil},
		{"the next one", messages.RecordID{Seq: messages.SeqCRecordID, Number: initial + 1}, initial + 2, nil},
		{"far above", messages.RecordID{Seq: messages.SeqCRecordID, Number: initial + 1000}, initial + 1001, nil},
		{"at the cap", messages.RecordID{Seq: messages.SeqCRecordID, Number: math.MaxUint64 - 1<<32}, math.MaxUint64 - 1<<32 + 1, nil},
		{"above the cap", messages.RecordID{Seq: messages.SeqCRecordID, Number: math.MaxUint64 - 1<<32 + 1}, initial + 1, messages.ErrExplicitID},
		{"unknown sequence", messages.RecordID{Seq: 99, Number: 5}, initial + 1, messages.ErrUnknownSequence},
		{"WLog offset", messages.RecordID{Seq: messages.SeqWLogOffset, Number: 5}, initial + 1, messages.ErrUnknownSequence},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := up(t, messages.Settings{})
			if got := w.event(1, kindBare, messages.SeqCRecordID); got[0] != initial {
				t.Fatalf("got %v", got)
			}
			o := w.begun(1, kindBare)
			c := w.raise(o, test.id.Seq, test.id.Number)
			if err := refusalOf(c); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			w.commit(o)
			// Replayed or not, it goes on behind the id.
			for range 2 {
				o = w.begun(1, kindBare)
				if got := w.given(w.next(o, messages.SeqCRecordID)); got != test.next {
					t.Fatalf("got %d, want %d", got, test.next)
				}
				w.actualize(o)
				w.settle()
			}
			w.finish()
		})
	}
}

func TestStartRefused(t *testing.T) {
	for _, test := range []struct {
		name  string
		start messages.Start
		want  error
	}{
		{"workspace of another partition", messages.Start{Workspace: 2, Kind: kindWide}, messages.ErrWrongPartition},
		{"unknown kind", messages.Start{Workspace: 1, Kind: 9}, messages.ErrUnknownKind},
		{"no kind", messages.Start{Workspace: 1}, messages.ErrUnknownKind},
		{"another kind than the first event's", messages.Start{Workspace: 3, Kind: kindOther}, messages.ErrKindMismatch},
		{"too late", messages.Start{Workspace: 1, Kind: kindWide, Deadline: 999_999_999}, messages.ErrDeadlineExceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := up(t, messages.Settings{})
			w.event(3, kindWide)
			o := w.request(test.start)
			w.settle()
			w.mustRefuse(o.start, test.want)
			if w.core.txn.open {
				t.Fatal("a transaction is open")
			}
			w.event(3, kindWide)
			w.finish()
		})
	}
}

// TestDeadlinePassesWhileWaiting: a Start that has become too late while it waited is
// answered and not granted; the deadline itself is in time.
func TestDeadlinePassesWhileWaiting(t *testing.T) {
	w := up(t, messages.Settings{})
	w.event(3, kindWide)
	o := w.begun(1, kindWide)
	late := w.request(messages.Start{Workspace: 3, Kind: kindWide, Deadline: w.now + 999})
	inTime := w.request(messages.Start{Workspace: 3, Kind: kindWide, Deadline: w.now + 1000})
	w.now += 1000
	w.cancel(o)
	w.mustRefuse(late.start, messages.ErrDeadlineExceeded)
	if !inTime.granted {
		t.Fatal("the one in time is not granted")
	}
	w.finish()
}

// TestLimitHoldsForThoseWhoWait: one event can pass the Busy limit, not as many as
// wait.
func TestLimitHoldsForThoseWhoWait(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 2, BusyLimit: 2})
	o := w.begun(1, kindWide)
	waiting := w.request(messages.Start{Workspace: 1, Kind: kindWide})
	w.commit(o)
	w.mustBusy(waiting.start, messages.BusyUnflushed)
	w.finish()
}

func TestUnknownSequence(t *testing.T) {
	w := up(t, messages.Settings{})
	o := w.begun(1, kindWide)
	for _, seq := range []messages.SeqID{0, messages.SeqWLogOffset, 4, 15, seqOther, 19, math.MaxUint16} {
		w.mustRefuse(w.next(o, seq), messages.ErrUnknownSequence)
	}
	w.given(w.next(o, seqPlain))
	w.commit(o)
	w.finish()
}

func TestCancelGivesBack(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never})
	for range 3 {
		o := w.begun(1, kindWide)
		w.given(w.next(o, seqPlain))
		w.raise(o, seqFrom, 1000)
		w.cancel(o)
		w.mustRefuse(w.cancel(o), messages.ErrNoTransaction)
		w.mustRefuse(w.next(o, seqPlain), messages.ErrNoTransaction)
	}
	if w.core.unflushedKeys() != 0 || len(w.timers) > 1 {
		t.Fatalf("cancelled transactions left %d keys", w.core.unflushedKeys())
	}
	if got := w.event(1, kindWide, seqPlain, seqFrom); got[0] != 1 || got[1] != 100 {
		t.Fatalf("got %v, want 1 and 100", got)
	}
	w.finish()
}

func TestTransactionLimit(t *testing.T) {
	w := up(t, messages.Settings{TransactionLimit: time.Second})
	o := w.begun(1, kindWide)
	w.given(w.next(o, seqPlain))
	w.advance(600 * time.Millisecond)
	w.cancel(o)
	// The timer of the first transaction must not end the second.
	o = w.begun(1, kindWide)
	w.advance(999 * time.Millisecond)
	w.given(w.next(o, seqPlain))
	w.advance(time.Millisecond)
	w.mustRefuse(w.next(o, seqPlain), messages.ErrFenced)
	if w.write(o) {
		t.Fatal("the store takes what the old owner writes")
	}
	w.mustRefuse(w.flush(o), messages.ErrFenced)
	if got := w.event(1, kindWide, seqPlain); got[0] != 1 {
		t.Fatalf("got %v, want 1", got)
	}
	w.finish()
}

func TestOwnerStops(t *testing.T) {
	for name, writes := range map[string]bool{"before the write": false, "after the write": true} {
		t.Run(name, func(t *testing.T) {
			w := up(t, messages.Settings{})
			o := w.request(messages.Start{Workspace: 1, Kind: kindWide, WatchOwner: true})
			w.settle()
			if w.watched != o.start {
				t.Fatal("the owner is not watched")
			}
			w.given(w.next(o, seqPlain))
			want := messages.Number(1)
			if writes {
				w.write(o)
				want = 2
			}
			w.ownerStops(o)
			w.mustBe(messages.StateInitializing)
			w.settle()
			if got := w.event(1, kindWide, seqPlain); got[0] != want {
				t.Fatalf("got %v, want %d", got, want)
			}
			w.finish()
		})
	}
}

// TestWatchMovesOn: in one step one transaction ends and the next begins; the owner
// of both may be the same actor.
func TestWatchMovesOn(t *testing.T) {
	w := up(t, messages.Settings{})
	first := w.request(messages.Start{Workspace: 1, Kind: kindWide, WatchOwner: true})
	second := w.request(messages.Start{Workspace: 1, Kind: kindWide, WatchOwner: true})
	third := w.request(messages.Start{Workspace: 1, Kind: kindWide})
	w.settle()
	w.commit(first)
	if w.watched != second.start {
		t.Fatal("the second owner is not watched")
	}
	w.tell(&messages.OwnerStopped{Token: first.token})
	w.commit(second)
	if w.watched != nil {
		t.Fatal("watches an owner who did not want it")
	}
	w.commit(third)
	w.finish()
}

func TestTooManyNumbers(t *testing.T) {
	w := up(t, messages.Settings{})
	w.begun(1, kindBare)
	token := w.core.txn.token
	m := &messages.Next{Token: token, Seq: messages.SeqCRecordID}
	for i := range messages.MaxEventNumbers {
		fx := w.core.Step("owner", m, w.now)
		if _, ok := fx.Replies[0].Message.(*messages.Given); !ok {
			t.Fatalf("number %d: got %+v", i, fx.Replies[0].Message)
		}
	}
	w.mustRefuse(w.next(w.open, messages.SeqCRecordID), messages.ErrTooManyNumbers)
	w.cancel(w.open)
	w.event(1, kindBare, messages.SeqCRecordID)
	w.finish()
}

// TestTimeNeverFalls: not when the clock is set back, nor after a restart, also when
// nothing is replayed.
func TestTimeNeverFalls(t *testing.T) {
	w := up(t, messages.Settings{})
	w.event(1, kindWide)
	last := w.log[0].RegisteredAt
	for i, restart := range []func(){func() {}, w.crash, func() { w.advance(time.Minute); w.crash() }} {
		w.now = 1000
		restart()
		w.now = 1000
		w.settle()
		o := w.request(messages.Start{Workspace: 1, Kind: kindWide})
		w.settle()
		if o.registeredAt != last {
			t.Fatalf("case %d: got %v, want %v", i, o.registeredAt, last)
		}
		w.commit(o)
	}
}

func TestReconfigure(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		w := up(t, messages.Settings{})
		w.mustRefuse(w.ask(nil, &messages.Reconfigure{Settings: messages.Settings{FlushThreshold: 5, BusyLimit: 4}}), messages.ErrSettings)
		if w.core.settings != w.config.Settings {
			t.Fatal("wrong settings were taken")
		}
		w.finish()
	})
	t.Run("threshold and limit", func(t *testing.T) {
		w := up(t, messages.Settings{FlushInterval: never})
		w.event(1, kindWide)
		w.reconfigure(messages.Settings{FlushInterval: never, FlushThreshold: 1, BusyLimit: 1})
		if w.core.flight.pending == nil {
			t.Fatal("the new threshold is reached, but nothing is flushed")
		}
		w.mustBusy(w.request(messages.Start{Workspace: 1, Kind: kindWide}).start, messages.BusyUnflushed)
		w.settle()
		w.finish()
	})
	t.Run("interval", func(t *testing.T) {
		w := up(t, messages.Settings{FlushInterval: never})
		w.event(1, kindWide)
		w.reconfigure(messages.Settings{FlushInterval: time.Second})
		w.advance(time.Second)
		if w.checkpoint != 2 {
			t.Fatal("the old interval is still waited for")
		}
		w.finish()
	})
	t.Run("transaction limit", func(t *testing.T) {
		w := up(t, messages.Settings{TransactionLimit: never})
		o := w.begun(1, kindWide)
		w.advance(time.Second)
		w.reconfigure(messages.Settings{TransactionLimit: 2 * time.Second})
		w.advance(999 * time.Millisecond)
		w.given(w.next(o, seqPlain))
		w.advance(time.Millisecond)
		w.mustRefuse(w.next(o, seqPlain), messages.ErrFenced)
		w.finish()
	})
}

func (w *world) reconfigure(s messages.Settings) {
	w.t.Helper()
	if c := w.ask(nil, &messages.Reconfigure{Settings: s}); refusalOf(c) != nil {
		w.t.Fatalf("reconfigure: %v", refusalOf(c))
	}
}
