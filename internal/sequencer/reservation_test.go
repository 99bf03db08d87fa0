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
