package sequencer

import (
	"math"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// lasts are last numbers of a workspace: of each sequence of its kind, and of one that restarts in each of its
// periods that is known.
type lasts struct {
	// last is in order of the kind's sequences. Zero means that none was given, or none is known.
	last []messages.Number
	// periods are those that last is of, zero for sequences that never restart; empty if none of the kind's does.
	periods []calendar.Date
	// others are the last numbers in other periods, in order; 0 if it is known that none was given.
	others []messages.SequenceNumber
	// zones are the changes of the workspace's time zone, nil if there was none. Copies of the numbers share them.
	zones *zones
	// owned says that the list of the others may be changed in place. Else copies of the numbers share it.
	owned bool
}

// fewNumbers are the last numbers of as many sequences as most kinds have, in one piece with what has them.
type fewNumbers [8]messages.Number

// newLasts returns those of a workspace without numbers. few, if it is not nil, is memory of their own.
func newLasts(kind *kindDef, few *fewNumbers) (l lasts) {
	if n := len(kind.sequences); few != nil && n <= len(few) {
		l.last = few[:n:n]
	} else {
		l.last = make([]messages.Number, n)
	}
	if kind.restarts != nil {
		l.periods = make([]calendar.Date, len(kind.sequences))
	}
	return l
}

// copyFrom makes them the same, with memory of their own.
func (l *lasts) copyFrom(from *lasts) {
	l.last = append(l.last[:0], from.last...)
	l.periods = append(l.periods[:0], from.periods...)
	l.others, l.owned = from.share(), false
	l.zones = from.zones
}

// share returns the list of the others for a copy of the numbers. From now on whoever changes it makes a list of his
// own.
func (l *lasts) share() []messages.SequenceNumber {
	l.owned = false
	return l.others
}

// sharesOthers reports whether the others are the same list.
func (l *lasts) sharesOthers(with *lasts) bool {
	return len(l.others) == len(with.others) && (len(l.others) == 0 || &l.others[0] == &with.others[0])
}

// periodOf returns the period that a sequence's entry of last is of.
func (l *lasts) periodOf(i int) calendar.Date {
	if len(l.periods) == 0 {
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
	if l.periodOf(i) == period { // as for all sequences that never restart
		return l.last[i], true
	}
	return l.inOther(kind, i, period)
}

func (l *lasts) inOther(kind *kindDef, i int, period calendar.Date) (messages.Number, bool) {
	if at, ok := l.findOther(messages.SequencePeriod{Seq: kind.ids[i], Period: period}); ok {
		return l.others[at].Number, true
	}
	return 0, false
}

// setOther notes the last number in another period than that of last.
func (l *lasts) setOther(n messages.SequenceNumber) {
	at, ok := l.findOther(n.SequencePeriod())
	if !l.owned {
		l.others, l.owned = append(make([]messages.SequenceNumber, 0, len(l.others)+1), l.others...), true
	}
	if ok {
		l.others[at] = n
		return
	}
	l.others = slices.Insert(l.others, at, n)
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

// raise merges a number by maximum, and returns the one before, and whether it is another now.
func (l *lasts) raise(kind *kindDef, i int, period calendar.Date, n messages.Number) (was messages.Number, raised bool) {
	if was, _ = l.in(kind, i, period); n <= was {
		return was, false
	}
	l.put(kind, i, period, n)
	return was, true
}

// merge merges what changed, by maximum. There, last is of the newest periods.
func (l *lasts) merge(kind *kindDef, changed *lasts) {
	for i, n := range changed.last {
		l.raise(kind, i, changed.periodOf(i), n)
	}
	if len(changed.others) == 0 {
		return
	}
	// One by one they would be inserted among thousands.
	merged, others := make([]messages.SequenceNumber, 0, len(l.others)+len(changed.others)), l.others
	for _, n := range changed.others {
		for len(others) > 0 && others[0].SequencePeriod().Compare(n.SequencePeriod()) < 0 {
			merged, others = append(merged, others[0]), others[1:]
		}
		if len(others) > 0 && others[0].SequencePeriod() == n.SequencePeriod() {
			n.Number, others = max(n.Number, others[0].Number), others[1:]
		}
		merged = append(merged, n)
	}
	l.others, l.owned = append(merged, others...), true
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

// dropBelow forgets the periods of a sequence before one, but some.
func (l *lasts) dropBelow(seq messages.SeqID, first calendar.Date, but map[calendar.Date]bool) {
	drop := func(n messages.SequenceNumber) bool {
		return n.Seq == seq && n.Period < first && !but[n.Period]
	}
	if slices.ContainsFunc(l.others, drop) {
		l.others = slices.DeleteFunc(slices.Clone(l.others), drop)
	}
}

// othersOf returns the others that are of a sequence.
func (l *lasts) othersOf(seq messages.SeqID) []messages.SequenceNumber {
	from, _ := l.findOther(messages.SequencePeriod{Seq: seq})
	to, _ := l.findOther(messages.SequencePeriod{Seq: seq, Period: math.MaxUint32})
	return l.others[from:to]
}

// ofSequence returns the periods of a sequence that have a number, in order.
func (l *lasts) ofSequence(kind *kindDef, i int) (periods []calendar.Date) {
	for _, o := range l.othersOf(kind.ids[i]) {
		if o.Number != 0 && o.Period != l.periods[i] {
			periods = append(periods, o.Period)
		}
	}
	if l.last[i] == 0 {
		return periods
	}
	at, _ := slices.BinarySearch(periods, l.periods[i])
	return slices.Insert(periods, at, l.periods[i])
}

// newestOf returns the newest n of the periods of a sequence that have a number, in order, and maybe one more. Of a
// list of many it looks at no others.
func (l *lasts) newestOf(kind *kindDef, i, n int) (periods []calendar.Date) {
	others := l.othersOf(kind.ids[i])
	for at := len(others) - 1; at >= 0 && len(periods) < n; at-- {
		if o := &others[at]; o.Number != 0 && o.Period != l.periods[i] {
			periods = append(periods, o.Period)
		}
	}
	if l.last[i] != 0 {
		periods = append(periods, l.periods[i])
	}
	slices.Sort(periods)
	return periods
}
