package sequencer

import (
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// lasts are last numbers of a workspace: of each sequence of its kind, and of one that restarts in each of its
// periods that is known.
type lasts struct {
	// last is in order of the kind's sequences. Zero means that none was given, or none is known.
	last []messages.Number
	// periods are those that last is of, zero for sequences that never restart; nil if none of the kind's does.
	periods []calendar.Date
	// others are the last numbers in other periods, in order. A list is never changed in place: copies
	// of the numbers share it.
	others []messages.SequenceNumber
}

func newLasts(kind *kindDef) lasts {
	l := lasts{last: make([]messages.Number, len(kind.sequences))}
	if kind.restarts != nil {
		l.periods = make([]calendar.Date, len(kind.sequences))
	}
	return l
}

// copyFrom makes them the same, with memory of their own.
func (l *lasts) copyFrom(from *lasts) {
	l.last = append(l.last[:0], from.last...)
	l.periods = append(l.periods[:0], from.periods...)
	l.others = from.others
}

// periodOf returns the period that a sequence's entry of last is of.
func (l *lasts) periodOf(i int) calendar.Date {
	if l.periods == nil {
		return 0
	}
	return l.periods[i]
}

// findOther returns where the last number of another period is, or would be.
func (l *lasts) findOther(p messages.SequencePeriod) (int, bool) {
	return slices.BinarySearchFunc(l.others, p, func(n messages.SequenceNumber, p messages.SequencePeriod) int {
		return n.SequencePeriod().Compare(p)
	})
}

// in returns the last number of a sequence in a period, and whether it is known.
func (l *lasts) in(kind *kindDef, i int, period calendar.Date) (messages.Number, bool) {
	if l.periodOf(i) == period {
		return l.last[i], true
	}
	if at, ok := l.findOther(messages.SequencePeriod{Seq: kind.ids[i], Period: period}); ok {
		return l.others[at].Number, true
	}
	return 0, false
}

// setOther notes the last number in another period than that of last.
func (l *lasts) setOther(n messages.SequenceNumber) {
	at, ok := l.findOther(n.SequencePeriod())
	others := make([]messages.SequenceNumber, 0, len(l.others)+1)
	others = append(append(others, l.others[:at]...), n)
	if ok {
		at++
	}
	l.others = append(others, l.others[at:]...)
}

// turn makes the entry of last that of a period. Others know the one that it was of.
func (l *lasts) turn(kind *kindDef, i int, period calendar.Date) {
	was := l.periodOf(i)
	if was == period {
		return
	}
	n, _ := l.in(kind, i, period)
	if was != 0 {
		l.setOther(messages.SequenceNumber{Seq: kind.ids[i], Period: was, Number: l.last[i]})
	}
	l.last[i], l.periods[i] = n, period
}

// put sets the last number of a sequence in a period. That of the newest one is in last.
func (l *lasts) put(kind *kindDef, i int, period calendar.Date, n messages.Number) {
	if period > l.periodOf(i) {
		l.turn(kind, i, period)
	}
	if period == l.periodOf(i) {
		l.last[i] = n
		return
	}
	l.setOther(messages.SequenceNumber{Seq: kind.ids[i], Period: period, Number: n})
}

// each calls fn for each number that is known and not 0: in order of sequences, and of periods but that the
// one of last comes behind the others.
func (l *lasts) each(kind *kindDef, fn func(i int, period calendar.Date, n messages.Number)) {
	at := 0
	for i, n := range l.last {
		for ; at < len(l.others) && l.others[at].Seq <= kind.ids[i]; at++ {
			if o := &l.others[at]; o.Seq == kind.ids[i] && o.Number != 0 && o.Period != l.periodOf(i) {
				fn(i, o.Period, o.Number)
			}
		}
		if n != 0 {
			fn(i, l.periodOf(i), n)
		}
	}
}

// dropBelow forgets the periods of a sequence before one.
func (l *lasts) dropBelow(seq messages.SeqID, first calendar.Date) {
	below := func(n messages.SequenceNumber) bool { return n.Seq == seq && n.Period < first }
	if slices.ContainsFunc(l.others, below) {
		l.others = slices.DeleteFunc(slices.Clone(l.others), below)
	}
}

// ofSequence returns the periods of a sequence that have a number, in order.
func (l *lasts) ofSequence(kind *kindDef, i int) (periods []calendar.Date) {
	at, _ := l.findOther(messages.SequencePeriod{Seq: kind.ids[i]})
	for ; at < len(l.others) && l.others[at].Seq == kind.ids[i]; at++ {
		if o := &l.others[at]; o.Number != 0 && o.Period != l.periods[i] {
			periods = append(periods, o.Period)
		}
	}
	if l.last[i] == 0 {
		return periods
	}
	at, _ = slices.BinarySearch(periods, l.periods[i])
	return slices.Insert(periods, at, l.periods[i])
}
