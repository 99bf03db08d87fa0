package sim

import (
	"cmp"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/tests/internal/days"
)

func (l *ledger) newDays() *days.Log {
	def := l.s.sequences[seqDaily]
	return days.New(&def)
}

// daysOf returns what the log says of a workspace now.
func (l *ledger) daysOf(ws messages.WSID) *days.Log {
	d := l.newDays()
	l.wlog(ws, func(e messages.Event) bool {
		_ = d.Add(&e, l.daysIn(d, &e)) // that is checked in the end
		return false
	})
	return d
}

// daysIn returns what an event says of seqDaily.
func (l *ledger) daysIn(d *days.Log, e *messages.Event) []days.Number {
	return d.Numbers(e, func(i int) calendar.Date {
		for _, draft := range l.of(e).drafts {
			if string(draft.Body) == string(e.Body) {
				return takenOf(&draft)[i].Period
			}
		}
		return 0
	})
}

// checkDays checks an event's numbers of seqDaily.
func (l *ledger) checkDays(of map[messages.WSID]*days.Log, e *messages.Event) {
	d := of[e.Workspace]
	if d == nil {
		d = l.newDays()
		of[e.Workspace] = d
	}
	numbers := l.daysIn(d, e)
	for i, n := range numbers {
		l.meetDay(d, e, n, i == 0)
	}
	if err := d.Add(e, numbers); err != nil {
		l.s.failf("%v", err)
	}
}

func (l *ledger) meetDay(d *days.Log, e *messages.Event, n days.Number, first bool) {
	s, utc, today := l.s, calendar.DateOf(e.RegisteredAt.Time()), d.At(e.RegisteredAt.Time())
	s.meet(metRestart, n.Number == 1 && n.Period == today && len(d.Last) > 0)
	s.meet(metLate, n.Number > 1 && n.Period < today)
	s.meet(metFirstLate, n.Number == 1 && n.Period < today)
	s.meet(metAhead, n.Period > today)
	s.meet(metBehindZone, today < utc)
	s.meet(metAheadZone, today > utc)
	s.meet(metBrought, n.Taken && first && e.Brought > 0)
	s.meet(metMoved, n.Taken && len(e.Moves) > 0)
}

// checkDate checks that a business date is refused only if it is out of what the error says, and that this is so: as far
// as can be known, since a partition that was taken over may know less.
func (l *ledger) checkDate(r *request, e *messages.BusinessDateError) {
	d := l.daysOf(r.workspace)
	today, named := d.At(dawn.Add(l.s.after(l.s.ahead))), false
	for i := range r.drafts {
		draft := &r.drafts[i]
		named = named || draft.Date == e.Date
		for _, n := range takenOf(draft) {
			named = named || n.Period == e.Date
		}
	}
	closed, ahead := e.Date < e.First, e.Date > e.Last
	l.s.meet(metClosed, closed)
	l.s.meet(metTooFar, ahead)
	right := ahead && e.Last <= d.Latest(today)
	// The drafts before one may have closed its day.
	for i := range r.drafts {
		d.Take(cmp.Or(r.drafts[i].Date, today), 1)
		for _, n := range takenOf(&r.drafts[i]) {
			d.Take(cmp.Or(n.Period, r.drafts[i].Date, today), 1)
		}
	}
	right = right || closed && e.First <= d.Closed
	if !named || e.Workspace != r.workspace || e.Seq != seqDaily || !right {
		l.s.failf("request %d: refused since %v, today is at most %v, closed below %v", r.id, e, today, d.Closed)
	}
}
