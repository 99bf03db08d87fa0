package sequencer

import (
	"errors"
	"math"
	"testing"

	"github.com/partita-go/partita/messages"
)

// TestOWRecordIDEndsBelowCRecordID: an id alone says which of the two it is.
func TestOWRecordIDEndsBelowCRecordID(t *testing.T) {
	w := up(t, messages.Settings{})
	last := messages.InitialCRecordID - 1
	w.seqData[1] = storedOf(kindBare, map[messages.SeqID]messages.Number{
		messages.SeqWLogOffset: 1, messages.SeqOWRecordID: last - 1,
	})
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
	w.seqData[1] = storedOf(kindBare, map[messages.SeqID]messages.Number{messages.SeqWLogOffset: math.MaxUint64})
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

func (w *world) reconfigure(s messages.Settings) {
	w.t.Helper()
	if c := w.ask(nil, &messages.Reconfigure{Settings: s}); refusalOf(c) != nil {
		w.t.Fatalf("reconfigure: %v", refusalOf(c))
	}
}
