package sim

import (
	"cmp"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// takeOver lets the last event of a request bring a number along, or move a sequence, now and then: mostly forward. A
// transaction does so in its own period only.
func (c *client) takeOver(r *request, transaction bool) {
	if r.begun != 0 || c.random.IntN(5) > 0 {
		return
	}
	d := &r.drafts[len(r.drafts)-1]
	byNumber := func(dr messages.DraftRecord) bool { return dr.ID == messages.RecordID{} }
	brings := !slices.ContainsFunc(d.Records, byNumber) && c.random.IntN(2) == 0
	seqs := c.s.sequencesOf(r.kind)
	n := messages.SequenceNumber{Seq: seqs[c.random.IntN(len(seqs))]}
	at := n.SequencePeriod()
	if r.kind != 2 && c.random.IntN(4) == 0 {
		n = messages.SequenceNumber{Seq: seqDaily, Period: d.Date}
		if d.Date == 0 && !transaction {
			n.Period = c.date()
		}
		at = messages.SequencePeriod{Seq: seqDaily, Period: cmp.Or(n.Period, c.today())}
	}
	n.Number = c.s.ledger.reached(r, at) + messages.Number(c.random.IntN(6))
	if brings {
		d.Brought = append(d.Brought, n)
	} else {
		d.Moves = append(d.Moves, n)
	}
}

// takenOf are all that a draft brings along or moves.
func takenOf(d *messages.Draft) []messages.SequenceNumber { return slices.Concat(d.Brought, d.Moves) }

// reached is how far a sequence is at most once a request is written, as the log is now.
func (l *ledger) reached(r *request, at messages.SequencePeriod) messages.Number {
	n := max(l.lastNumber(r.workspace, at), l.highest(r, at), l.s.sequences[at.Seq].Initial-1)
	for i := range r.drafts {
		for _, w := range r.drafts[i].Wanted {
			if w.Seq == at.Seq {
				n += messages.Number(w.Numbers())
			}
		}
	}
	return n
}

// wentBack reports whether a request would move a sequence back, as an error says.
func (l *ledger) wentBack(r *request, e *messages.BackwardError) bool {
	named := slices.ContainsFunc(r.drafts, func(d messages.Draft) bool {
		return slices.ContainsFunc(takenOf(&d), func(n messages.SequenceNumber) bool {
			return n.Seq == e.Seq && n.Number == e.Wanted && l.s.inPeriod(&d, n, e.Period)
		})
	})
	return named && e.Workspace == r.workspace && e.Wanted <= e.Last && e.Last <= l.reached(r, messages.SequencePeriod{Seq: e.Seq, Period: e.Period})
}

// inPeriod reports whether a number that a draft takes over can be of a period: that of its business date, or else of
// its registration time, if it names none.
func (s *sim) inPeriod(d *messages.Draft, n messages.SequenceNumber, period calendar.Date) bool {
	if n.Seq != seqDaily {
		return period == 0
	}
	named := cmp.Or(n.Period, d.Date)
	return period != 0 && (named == 0 || named == period)
}

// sameTaken reports whether an event has taken over what its draft says.
func (s *sim) sameTaken(d *messages.Draft, e *messages.Event) bool {
	same := func(drafted, taken messages.SequenceNumber) bool {
		return drafted.Seq == taken.Seq && drafted.Number == taken.Number && s.inPeriod(d, drafted, taken.Period)
	}
	return int(e.Brought) == len(d.Brought) && slices.EqualFunc(d.Moves, e.Moves, same) && slices.EqualFunc(d.Brought, e.Numbers[:e.Brought], same)
}
