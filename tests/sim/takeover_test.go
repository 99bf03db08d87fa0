package sim

import (
	"slices"

	"github.com/partita-go/partita/messages"
)

// takeOver lets the last event of a request bring a number along, or move a sequence, now and then: mostly forward.
func (c *client) takeOver(r *request) {
	if r.begun != 0 || c.random.IntN(5) > 0 {
		return
	}
	d := &r.drafts[len(r.drafts)-1]
	seqs := c.s.sequencesOf(r.kind)
	number := func() []messages.SequenceNumber {
		n := messages.SequenceNumber{Seq: seqs[c.random.IntN(len(seqs))]}
		n.Number = c.s.ledger.reached(r, n.Seq) + messages.Number(c.random.IntN(6))
		return []messages.SequenceNumber{n}
	}
	byNumber := func(dr messages.DraftRecord) bool { return dr.ID == messages.RecordID{} }
	if !slices.ContainsFunc(d.Records, byNumber) && c.random.IntN(2) == 0 {
		d.Brought = number()
	} else {
		d.Moves = number()
	}
}

// reached is how far a sequence is at most once a request is written, as the log is now.
func (l *ledger) reached(r *request, seq messages.SeqID) messages.Number {
	n := max(l.lastNumber(r.workspace, seq), l.highest(r, seq), l.s.initial[seq]-1)
	for i := range r.drafts {
		for _, w := range r.drafts[i].Wanted {
			if w.Seq == seq {
				n += messages.Number(w.Numbers())
			}
		}
	}
	return n
}

// wentBack reports whether a request would move a sequence back, as an error says.
func (l *ledger) wentBack(r *request, e *messages.BackwardError) bool {
	named := slices.ContainsFunc(r.drafts, func(d messages.Draft) bool {
		taken := messages.SequenceNumber{Seq: e.Seq, Number: e.Wanted}
		return slices.Contains(d.Brought, taken) || slices.Contains(d.Moves, taken)
	})
	return named && e.Workspace == r.workspace && e.Wanted <= e.Last && e.Last <= l.reached(r, e.Seq)
}

// sameTaken reports whether an event has taken over what its draft says.
func sameTaken(d *messages.Draft, e *messages.Event) bool {
	return int(e.Brought) == len(d.Brought) && slices.Equal(e.Moves, d.Moves) && slices.Equal(e.Numbers[:e.Brought], d.Brought)
}
