package bolt

import (
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

// The files say what was taken over from an old system: a hole of it is no fault, a number that was lost is one.
func TestVerifyTakenOver(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		lsn    messages.LSN
		change func(*messages.Event)
		want   string
	}{
		"sound":                 {1, func(*messages.Event) {}, ""},
		"not brought along":     {1, func(e *messages.Event) { e.Brought = 0 }, "offset 1: workspace 3, sequence 17: number is 1002, want 1000"},
		"not, in a period":      {1, func(e *messages.Event) { e.Brought = 1 }, "offset 1: workspace 3, sequence 19 in 2026-03-29: number is 6, want 1"},
		"a move lost":           {2, func(e *messages.Event) { e.Moves = e.Moves[1:] }, "offset 3: workspace 3, sequence 17: number is 1044, want 1003"},
		"a period's move lost":  {2, func(e *messages.Event) { e.Moves = e.Moves[:1] }, "offset 3: workspace 3, sequence 19 in 2026-03-29: number is 17, want 7"},
		"moved further":         {4, func(e *messages.Event) { e.Moves[0].Number++ }, "workspace 3: stored numbers are"},
		"moved back":            {2, func(e *messages.Event) { e.Moves[0].Number = 1002 }, "offset 2: workspace 3, sequence 17: moved to 1002, want more than 1002"},
		"moved back, in a year": {2, func(e *messages.Event) { e.Moves[1].Number = 6 }, "offset 2: workspace 3, sequence 19 in 2026-03-29: moved to 6, want more than 6"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir, storagetest.Descriptor(messages.TrustNone), Options{})
			p := storagetest.Take(t, s, 0)
			invoice := func(by messages.Number) storagetest.Ahead {
				return storagetest.Ahead{Seq: storagetest.SeqInvoice, By: by}
			}
			receipt := func(by messages.Number) storagetest.Ahead {
				return storagetest.Ahead{Seq: storagetest.SeqReceipt, By: by}
			}
			p.Append(t,
				storagetest.Spec{Workspace: 3, Bring: []storagetest.Ahead{invoice(2), receipt(5)}},
				storagetest.Spec{Workspace: 3, Move: []storagetest.Ahead{invoice(40), receipt(9)}},
				storagetest.Spec{Workspace: 3, Give: []messages.SeqID{storagetest.SeqInvoice, storagetest.SeqReceipt}},
				storagetest.Spec{Workspace: 3, Bring: []storagetest.Ahead{invoice(3)}, Move: []storagetest.Ahead{invoice(0)}},
				storagetest.Spec{Workspace: 3},
			)
			p.FlushAll(t)
			rewriteLog(t, s, c.lsn, c.change)
			closeStore(t, s)
			r := verified(t, dir, verify.Options{})
			if c.want == "" && r.Err() != nil || c.want != "" && !strings.Contains(r.String(), c.want) {
				t.Errorf("got %s, want %q", r, c.want)
			}
		})
	}
}
