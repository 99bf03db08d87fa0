package sequencer

import (
	"math"
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
)

// counting starts a transaction whose owner counts itself.
func counting(w *world, ws messages.WSID, kind messages.WSKind) *owner {
	w.t.Helper()
	o := w.request(messages.Start{Workspace: ws, Kind: kind, WithNumbers: true})
	w.settle()
	if o.counts == nil {
		w.t.Fatalf("workspace %d: no numbers: %v", ws, refusalOf(o.start))
	}
	return o
}

// TestOwnerCounts: numbers that an owner counted itself and numbers that others
// asked for are one sequence.
func TestOwnerCounts(t *testing.T) {
	w := up(t, messages.Settings{})
	for i := range messages.Number(4) {
		o := w.begun(1, kindWide)
		if i%2 == 0 {
			w.cancel(o)
			o = counting(w, 1, kindWide)
		}
		for j := range messages.Number(2) {
			if got, want := w.given(w.next(o, seqFrom)), 100+2*i+j; got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		}
		w.commit(o)
	}
	o := counting(w, 1, kindWide)
	w.raise(o, seqPlain, 50)
	w.commit(o)
	if got := w.given(w.next(w.begun(1, kindWide), seqPlain)); got != 51 {
		t.Errorf("after an explicit id of 50: got %d, want 51", got)
	}
	w.finish()
}

// TestOwnerCountsInVain: numbers of a transaction that was cancelled are given
// again.
func TestOwnerCountsInVain(t *testing.T) {
	w := up(t, messages.Settings{})
	o := counting(w, 1, kindWide)
	w.given(w.next(o, seqPlain))
	w.cancel(o)
	if got := w.event(1, kindWide, seqPlain); got[0] != 1 {
		t.Errorf("got %d, want 1", got[0])
	}
	w.finish()
}

// TestOwnerCountsWrong: numbers that cannot be are refused, and the transaction
// stays open.
func TestOwnerCountsWrong(t *testing.T) {
	w := up(t, messages.Settings{})
	w.event(1, kindWide, seqPlain, seqFrom)
	o := counting(w, 1, kindWide)
	w.given(w.next(o, seqPlain))
	right := o.counts.Last()
	w.miscounted = true
	for name, wrong := range map[string]func(last []messages.Number) []messages.Number{
		"none":          func([]messages.Number) []messages.Number { return []messages.Number{} },
		"too many":      func(last []messages.Number) []messages.Number { return append(last, 1) },
		"fell":          func(last []messages.Number) []messages.Number { last[slices.Index(last, 100)]--; return last },
		"WLog offset":   func(last []messages.Number) []messages.Number { last[wlogOffset]++; return last },
		"above the end": func(last []messages.Number) []messages.Number { last[2] = math.MaxUint64; return last },
	} {
		c := w.ask(o, &messages.Flush{Token: o.token, Last: wrong(slices.Clone(right))})
		if err := refusalOf(c); err == nil {
			t.Errorf("%s: got %T", name, c.reply)
		}
		w.mustRefuse(c, messages.ErrCounted)
	}
	w.commit(o)
	if got := w.event(1, kindWide, seqPlain, seqFrom); got[0] != 3 || got[1] != 101 {
		t.Errorf("got %v, want 3 and 101", got)
	}
	w.finish()
}
