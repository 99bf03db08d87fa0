package sequencer

import (
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// restartDef is how a sequence restarts.
type restartDef struct {
	*messages.Restart
	zone calendar.Zone
}

func newRestartDef(s *messages.Sequence) *restartDef {
	if !s.Restarts() {
		return nil
	}
	d := &restartDef{Restart: &s.Restart}
	if s.Restart.Zone != "" {
		// The descriptor is valid: the zone was loaded before.
		d.zone, _ = calendar.LoadZone(s.Restart.Zone)
	}
	return d
}

// restart returns how a sequence restarts, nil if it never does.
func (k *kindDef) restart(i int) *restartDef {
	if k.restarts == nil {
		return nil
	}
	return k.restarts[i]
}

// span is what a partition knows of a sequence that restarts, in one workspace.
type span struct {
	// current is the period of the registration time, until it is this time; zero before it was asked for.
	current calendar.Date
	until   messages.Timestamp
	// closedBelow is the first period that is not closed, zero if none is.
	closedBelow calendar.Date
	// known is the oldest period from which on all last numbers are known; zero if all are.
	known calendar.Date
}

// currentPeriod returns the period of the registration time.
func (c *Core) currentPeriod(ws *workspace, i int) calendar.Date {
	s := &ws.spans[i]
	if c.lastTime < s.until {
		return s.current
	}
	d := ws.kind.restarts[i]
	period, until := calendar.Zones(nil).PeriodAt(d.Rule, d.zone, c.lastTime.Time())
	s.current, s.until = period, messages.TimestampOf(until)
	return period
}

// periodFor returns the period of the numbers of an event with a business date, which may be none.
func (c *Core) periodFor(ws *workspace, i int, date calendar.Date) (calendar.Date, error) {
	current := c.currentPeriod(ws, i)
	if date == 0 {
		return current, nil
	}
	d := ws.kind.restarts[i]
	period, last, first := d.PeriodOf(date), d.Add(current, d.MostAhead()), ws.spans[i].closedBelow
	if period < first || period > last {
		return 0, &messages.BusinessDateError{Workspace: ws.id, Seq: ws.kind.ids[i], Date: date, First: first, Last: last}
	}
	return period, nil
}

// turnTo makes a reservation count on in the periods of a draft's numbers.
func (c *Core) turnTo(r *Reservation, ws *workspace, d *messages.Draft) error {
	if r.kind.restarts == nil {
		return nil
	}
	for _, wanted := range d.Wanted {
		if err := c.turnSequence(r, ws, r.kind.index(wanted.Seq), d.Date); err != nil {
			return err
		}
	}
	return nil
}

// turnAll does so for all sequences: what a transaction will want is not known.
func (c *Core) turnAll(r *Reservation, ws *workspace, date calendar.Date) error {
	for i := range r.kind.restarts {
		if err := c.turnSequence(r, ws, i, date); err != nil {
			return err
		}
	}
	return nil
}

func (c *Core) turnSequence(r *Reservation, ws *workspace, i int, date calendar.Date) error {
	if r.kind.restarts[i] == nil {
		return nil
	}
	period, err := c.periodFor(ws, i, date)
	if err == nil {
		r.turn(r.kind, i, period)
	}
	return err
}

// unknownPeriods returns the periods whose last numbers a request needs and nobody knows.
func (w *waiting) unknownPeriods() (unknown []messages.SequencePeriod) {
	if w.ws.kind != w.kind || w.kind.restarts == nil {
		return nil
	}
	if w.start != nil {
		for _, seq := range w.kind.ids {
			unknown = w.ws.addUnknown(unknown, seq, w.start.Date)
		}
		return unknown
	}
	for i := range w.append.Drafts {
		d := &w.append.Drafts[i]
		for _, wanted := range d.Wanted {
			unknown = w.ws.addUnknown(unknown, wanted.Seq, d.Date)
		}
	}
	return unknown
}

// addUnknown adds a sequence's period of a business date, if its last number is not known.
func (w *workspace) addUnknown(unknown []messages.SequencePeriod, seq messages.SeqID, date calendar.Date) []messages.SequencePeriod {
	i := w.kind.index(seq)
	d := w.kind.restart(i)
	if date == 0 || d == nil {
		return unknown
	}
	p := messages.SequencePeriod{Seq: seq, Period: d.PeriodOf(date)}
	s := &w.spans[i]
	if p.Period >= s.known || p.Period < s.closedBelow || slices.Contains(unknown, p) {
		return unknown
	}
	if _, known := w.in(w.kind, i, p.Period); known {
		return unknown
	}
	return append(unknown, p)
}

// close closes the periods of a sequence that are not to be kept, when there is a new one.
func (w *workspace) close(i int) {
	d, s := w.kind.restarts[i], &w.spans[i]
	if d == nil || d.Keep == 0 {
		return
	}
	s.closedBelow = max(s.closedBelow, d.ClosedBelow(w.ofSequence(w.kind, i)))
	w.dropBelow(w.kind.ids[i], s.closedBelow)
}

// span takes over what was loaded about the periods of a workspace: those that were asked for have no number unless
// they are among those loaded.
func (w *workspace) span(stored *messages.WorkspaceNumbers, asked []messages.SequencePeriod) {
	if w.spans == nil {
		return
	}
	for _, p := range stored.Closed {
		if i := w.kind.index(p.Seq); i >= 0 {
			w.spans[i].closedBelow = p.Period
		}
	}
	for _, seq := range stored.Older {
		if i := w.kind.index(seq); i >= 0 {
			w.spans[i].known = w.oldestBut(i, asked)
		}
	}
	w.learn(w, asked)
}

// oldestBut returns the oldest period of a sequence that has a number and was not asked for.
func (w *workspace) oldestBut(i int, asked []messages.SequencePeriod) calendar.Date {
	for _, p := range w.ofSequence(w.kind, i) {
		if !slices.Contains(asked, messages.SequencePeriod{Seq: w.kind.ids[i], Period: p}) {
			return p
		}
	}
	return 0
}

// learn takes over the last numbers of periods that were asked for, 0 if there is none.
func (w *workspace) learn(from *workspace, asked []messages.SequencePeriod) {
	for _, p := range asked {
		i := w.kind.index(p.Seq)
		n, _ := from.in(from.kind, i, p.Period)
		if was, known := w.in(w.kind, i, p.Period); !known || n > was {
			w.setOther(messages.SequenceNumber{Seq: p.Seq, Period: p.Period, Number: n})
		}
	}
}
