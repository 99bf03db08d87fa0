package httpapi

import (
	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// takeOver reads the members of a draft that take over from an old system. Its business date is known.
func (d *drafting) takeOver(o *object) {
	o.each("brought", func(o *object) {
		d.draft.Brought = d.taken(o, d.draft.Brought)
		d.count = len(d.draft.Brought)
	})
	o.each("moves", func(o *object) { d.draft.Moves = d.taken(o, d.draft.Moves) })
}

// taken reads a number that is brought along, or that a sequence is moved to.
func (d *drafting) taken(o *object, before []messages.SequenceNumber) []messages.SequenceNumber {
	seq, there := d.sequence(o)
	if !there {
		o.fail("sequence", "it is missing")
	}
	period, _ := textMember(o, "period", calendar.ParseDate)
	number, there := textMember(o, "number", messages.ParseNumber)
	def := d.sequences[seq]
	switch err := def.CheckPeriod(d.draft.Date, period); {
	case !there:
		o.fail("number", "it is missing")
	case len(before) >= messages.MaxEventNumbers:
		o.fail("number", "got %d others, want at most %d in all", len(before), messages.MaxEventNumbers)
	case err != nil && (period != 0 || d.draft.Date == 0):
		o.fail("period", "%v", err)
	}
	return append(before, messages.SequenceNumber{Seq: seq, Period: period, Number: number})
}
