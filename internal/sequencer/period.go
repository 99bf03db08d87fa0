package sequencer

import (
	"cmp"
	"fmt"
	"time"

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

// hasPeriod reports whether a number with a period, which may be none, can be of a sequence.
func (k *kindDef) hasPeriod(i int, period calendar.Date) bool {
	return (period != 0) == (k.restart(i) != nil)
}

// newestPeriods is of how many periods a sequence that keeps all of them has its last numbers in the cache.
const newestPeriods = 4

// room is how many periods of a sequence a workspace has in the cache, as a rule.
func (d *restartDef) room() int {
	return max(cmp.Or(d.Keep, newestPeriods), d.MostAhead()+1)
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

// currentPeriod returns the period of the registration time, as far as the workspace's zones are known. What is closed stays so, also if the zone database is
// another one now, by which that period has not begun.
func (c *Core) currentPeriod(ws *workspace, i int) calendar.Date {
	s := &ws.spans[i]
	if c.lastTime >= s.until {
		period, until := ws.periodAt(i, c.lastTime.Time())
		s.current, s.until = period, messages.TimestampOf(until)
		if ws.zones.known() != nil {
			s.until = 0
		}
	}
	return max(s.current, s.closedBelow)
}

// periodAt returns the period of a time, and until when it lasts: for ever if that is zero.
func (w *workspace) periodAt(i int, at time.Time) (calendar.Date, time.Time) {
	d := w.kind.restart(i)
	if d == nil {
		return 0, time.Time{}
	}
	return w.zones.merged().PeriodAt(d.Rule, d.zone, at)
}

// periodFor returns the period of the numbers of an event with a business date, which may be none. What is reserved
// before it counts as if it were durable.
func (c *Core) periodFor(r *Reservation, ws *workspace, i int, date calendar.Date) (calendar.Date, error) {
	if err := ws.zones.known(); err != nil {
		return 0, fmt.Errorf("workspace %d: %w", ws.id, err)
	}
	current := c.currentPeriod(ws, i)
	if date == 0 {
		return current, nil
	}
	d := ws.kind.restarts[i]
	period, last, first := d.PeriodOf(date), d.Add(current, d.MostAhead()), ws.spans[i].closedBelow
	if d.Keep > 0 && !ws.sharesOthers(&r.lasts) {
		first = max(first, d.ClosedBelow(r.newestOf(r.kind, i, d.Keep+1)))
	}
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
	period, err := c.periodFor(r, ws, i, date)
	if err == nil {
		r.turn(r.kind, i, period)
	}
	return err
}

// dated is called with a sequence and a date in one of its periods, zero for the current one.
type dated func(i int, date calendar.Date)

// eachWanted calls fn for each sequence that a request may need a number of, with the business date.
func (w *waiting) eachWanted(fn dated) {
	if w.start != nil {
		for i := range w.kind.ids {
			fn(i, w.start.Date)
		}
		return
	}
	if w.otherwise != nil {
		return // It gets none, and nobody has looked at its drafts.
	}
	for i := range w.append.Drafts {
		d := &w.append.Drafts[i]
		for _, wanted := range d.Wanted {
			fn(w.kind.index(wanted.Seq), d.Date)
		}
		w.kind.eachTaken(d, fn)
	}
}

// knowsAll reports whether the last numbers of all periods are known.
func (w *workspace) knowsAll() bool {
	for i := range w.spans {
		if w.spans[i].known != 0 {
			return false
		}
	}
	return true
}

// unknownPeriods returns the periods whose last numbers a request may need and nobody knows.
func (c *Core) unknownPeriods(w *waiting) (unknown []messages.SequencePeriod) {
	if w.ws.kind != w.kind || w.ws.knowsAll() {
		return nil
	}
	listed := make(map[messages.SequencePeriod]bool) // a request may name many
	w.eachWanted(func(i int, date calendar.Date) {
		if w.kind.restarts[i] == nil || w.ws.spans[i].known == 0 {
			return
		}
		c.eachUnknown(w.ws, i, date, func(p messages.SequencePeriod) {
			if !listed[p] {
				listed[p] = true
				unknown = append(unknown, p)
			}
		})
	})
	return unknown
}

// eachUnknown tells the periods of a sequence that an event with a business date, which may be none, may get numbers
// of, as far as those are not known.
func (c *Core) eachUnknown(ws *workspace, i int, date calendar.Date, tell func(messages.SequencePeriod)) {
	d, s := ws.kind.restarts[i], &ws.spans[i]
	period := d.PeriodOf(date)
	last := period
	if date == 0 {
		// If there are numbers of later periods, the current one may be older than those that are known, and so may
		// the one that has begun when the request has its turn.
		period, last = c.currentPeriod(ws, i), d.Add(s.known, -1)
	}
	for ; period <= last && period < s.known; period = d.Add(period, 1) {
		if _, known := ws.in(ws.kind, i, period); !known && period >= s.closedBelow {
			tell(messages.SequencePeriod{Seq: ws.kind.ids[i], Period: period})
		}
	}
}

// forgetOld lets go of the oldest periods of the sequences that keep all, if more than twice as many are known as there
// is room for: they can be loaded again. Those that somebody waits for with this very copy stay.
func (c *Core) forgetOld(ws *workspace) {
	for i := range ws.spans {
		d := ws.kind.restarts[i]
		if d == nil || d.Keep > 0 {
			continue
		}
		others, room := ws.othersOf(ws.kind.ids[i]), d.room()
		if len(others) <= 2*room {
			continue
		}
		first := min(others[len(others)-room].Period, c.currentPeriod(ws, i))
		ws.dropBelow(ws.kind.ids[i], first, c.awaitedPeriods(ws, i))
		ws.spans[i].known = max(ws.spans[i].known, first)
	}
}

// awaitedPeriods returns the periods of business dates that requests which count on a workspace's numbers have.
func (c *Core) awaitedPeriods(ws *workspace, seq int) map[calendar.Date]bool {
	awaited := make(map[calendar.Date]bool)
	add := func(w *waiting) {
		if w.ws != ws || w.kind != ws.kind {
			return
		}
		w.eachWanted(func(i int, date calendar.Date) {
			if i == seq && date != 0 {
				awaited[ws.kind.restarts[i].PeriodOf(date)] = true
			}
		})
	}
	for i := range c.queue.items[c.queue.left:] {
		add(&c.queue.items[c.queue.left+i])
	}
	for i := range c.batch.members {
		add(&c.batch.members[i].waiting)
	}
	return awaited
}

// close closes the periods of a sequence that are not to be kept, when there is a new one.
func (w *workspace) close(i int) {
	d, s := w.kind.restarts[i], &w.spans[i]
	if d == nil || d.Keep == 0 {
		return
	}
	s.closedBelow = max(s.closedBelow, d.ClosedBelow(w.ofSequence(w.kind, i)))
	w.dropBelow(w.kind.ids[i], s.closedBelow, nil)
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
	for i := range w.spans {
		w.close(i) // the store has kept more than is to be kept now
	}
}

// oldestBut returns the oldest period of a sequence that has a number and was not asked for, or the newest one.
func (w *workspace) oldestBut(i int, asked []messages.SequencePeriod) calendar.Date {
	named := make(map[calendar.Date]bool, len(asked))
	for _, p := range asked {
		named[p.Period] = named[p.Period] || p.Seq == w.kind.ids[i]
	}
	for _, p := range w.ofSequence(w.kind, i) {
		if !named[p] {
			return p
		}
	}
	return w.periods[i]
}

// closeAs closes the periods that are closed in what was loaded later.
func (w *workspace) closeAs(loaded *workspace) {
	for i := range w.spans {
		if first := loaded.spans[i].closedBelow; first > w.spans[i].closedBelow {
			w.spans[i].closedBelow = first
			w.dropBelow(w.kind.ids[i], first, nil)
		}
	}
}

// learn takes over the last numbers of periods that were asked for, 0 if there is none.
func (w *workspace) learn(from *workspace, asked []messages.SequencePeriod) {
	for _, p := range asked {
		i := w.kind.index(p.Seq)
		if p.Period < w.spans[i].closedBelow {
			continue // it has no number any more, which does not mean that it never had one
		}
		n, _ := from.in(from.kind, i, p.Period)
		if was, known := w.in(w.kind, i, p.Period); !known || n > was {
			w.setOther(messages.SequenceNumber{Seq: p.Seq, Period: p.Period, Number: n})
		}
	}
}
