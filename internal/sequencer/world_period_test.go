package sequencer

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// The kind whose sequences restart: each local day with two days kept, each month with all kept, and each week
// with one kept and nothing ahead.
const (
	kindTill                      = messages.WSKind(4)
	seqReceipt, seqBill, seqRound = messages.SeqID(21), messages.SeqID(22), messages.SeqID(23)
	roundLargest                  = messages.Number(4)
)

func till() messages.Kind {
	return messages.Kind{ID: kindTill, Name: "till", Sequences: []messages.Sequence{
		{ID: seqReceipt, Name: "receipt", Initial: 1, Restart: messages.Restart{
			Rule: calendar.Rule{Every: calendar.Day}, Zone: "Europe/Zurich", Keep: 2,
		}},
		{ID: seqBill, Name: "bill", Initial: 100, Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Month}, Ahead: 3}},
		{ID: seqRound, Name: "round", Initial: 2, Largest: roundLargest, Restart: messages.Restart{
			Rule: calendar.Rule{Every: calendar.Week}, Keep: 1, Ahead: -1,
		}},
	}}
}

// newestStored is of how many periods a load brings the last numbers unasked, of a sequence that keeps all.
const newestStored = 2

// moment is a time of the world.
func moment(t failer, text string) messages.Timestamp {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return messages.TimestampOf(at)
}

// shownAt states anew which local date clocks have shown at most. None is set back by as much.
func shownAt(zone string, at messages.Timestamp) calendar.Date {
	t := at.Time().In(location(zone))
	return max(calendar.DateOf(t), calendar.DateOf(t.Add(-3*time.Hour)))
}

// locations are those that were loaded, by name: a game asks for few, often.
var locations sync.Map

func location(zone string) *time.Location {
	if loc, ok := locations.Load(zone); ok {
		return loc.(*time.Location)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	locations.Store(zone, loc)
	return loc
}

// naivePeriod states anew which period a date is in.
func naivePeriod(unit calendar.Unit, d calendar.Date) calendar.Date {
	switch unit {
	case calendar.Day:
		return d
	case calendar.Week:
		t := d.Time()
		for t.Weekday() != time.Monday {
			t = t.AddDate(0, 0, -1)
		}
		return calendar.DateOf(t)
	case calendar.Month:
		return d - calendar.Date(d.Day()) + 1
	default:
		return 0
	}
}

// naiveAdd is the n-th period after one.
func naiveAdd(unit calendar.Unit, d calendar.Date, n int) calendar.Date {
	days, months := map[calendar.Unit]int{calendar.Day: 1, calendar.Week: 7}, map[calendar.Unit]int{calendar.Month: 1}
	return calendar.DateOf(d.Time().AddDate(0, n*months[unit], n*days[unit]))
}

// periodAt is the period that an event at a time has its numbers of; 0 if the sequence never restarts.
func (w *world) periodAt(ws messages.WSID, kind messages.WSKind, seq messages.SeqID, date calendar.Date, at messages.Timestamp) calendar.Date {
	def := w.kinds()[kind][seq]
	if !def.Restarts() {
		return 0
	}
	if date != 0 {
		return naivePeriod(def.Restart.Every, date)
	}
	shown := naivePeriod(def.Restart.Every, shownAt(def.Restart.Zone, at))
	if zones := w.truth[ws].zones; len(zones) > 0 {
		// Of all changes that there ever were: package calendar is tested by itself.
		shown, _ = zones.PeriodAt(def.Restart.Rule, calendar.ZoneNamed(cmp.Or(def.Restart.Zone, "UTC")), at.Time())
	}
	return max(shown, w.truth[ws].closed[seq])
}

// checkPeriods: the numbers of an event are of the periods that its business date or its time says. One that a date
// says is not closed, and not too far ahead.
func (w *world) checkPeriods(e *messages.Event) {
	for i, n := range slices.Concat(e.Numbers, e.Moves) {
		want := w.periodAt(e.Workspace, e.WorkspaceKind, n.Seq, e.Date, e.RegisteredAt)
		if e.Date == 0 && n.Period != 0 && (i < int(e.Brought) || i >= len(e.Numbers)) {
			want = naivePeriod(w.kinds()[e.WorkspaceKind][n.Seq].Restart.Every, n.Period) // the draft has named it
		}
		if n.Period != want {
			w.t.Fatalf("event %d at %v, business date %v: got number %v, want period %v", e.PLogOffset, e.RegisteredAt, e.Date, n, want)
		}
		closed, current := w.truth[e.Workspace].closed[n.Seq], w.periodAt(e.Workspace, e.WorkspaceKind, n.Seq, 0, e.RegisteredAt)
		r := w.kinds()[e.WorkspaceKind][n.Seq].Restart
		if want != 0 && (want < closed || want > naiveAdd(r.Every, current, r.MostAhead())) {
			w.t.Fatalf("event %d at %v, business date %v: got number %v, closed below %v, now it is %v",
				e.PLogOffset, e.RegisteredAt, e.Date, n, closed, current)
		}
	}
}

// verifyPeriods checks that the log counts from the initial value without a gap in each period, closed or not.
func (w *world) verifyPeriods() {
	w.t.Helper()
	type place struct {
		workspace messages.WSID
		messages.SequencePeriod
	}
	last := make(map[place]messages.Number)
	for i := range w.log {
		e := &w.log[i]
		for j, n := range slices.Concat(e.Numbers, e.Moves) {
			at, taken := place{e.Workspace, n.SequencePeriod()}, j < int(e.Brought) || j >= len(e.Numbers)
			if want := max(last[at]+1, w.kinds()[e.WorkspaceKind][n.Seq].Initial); n.Period != 0 && n.Number != want && (!taken || n.Number < want) {
				w.t.Fatalf("event %d of workspace %d: got %v, want number %d", i+1, e.Workspace, n, want)
			}
			last[at] = n.Number
		}
	}
}

// last is the last number of a sequence that never restarts.
func (l storedNumbers) last(seq messages.SeqID) messages.Number {
	return l.numbers[messages.SequencePeriod{Seq: seq}]
}

// periods are those of a sequence that have a number, in order.
func (l storedNumbers) periods(seq messages.SeqID) (periods []calendar.Date) {
	for p := range l.numbers {
		if p.Seq == seq {
			periods = append(periods, p.Period)
		}
	}
	slices.Sort(periods)
	return periods
}

// close states anew which periods are closed, and forgets their numbers.
func (l storedNumbers) close(kind map[messages.SeqID]messages.Sequence) {
	for seq, def := range kind {
		r, periods := def.Restart, l.periods(seq)
		if def.Restarts() && r.Keep > 0 && len(periods) > r.Keep {
			newest := periods[len(periods)-1]
			kept, ahead := periods[len(periods)-r.Keep], naiveAdd(r.Every, newest, -r.MostAhead())
			l.closed[seq] = max(l.closed[seq], min(kept, ahead))
		}
	}
	maps.DeleteFunc(l.numbers, func(p messages.SequencePeriod, _ messages.Number) bool { return p.Period < l.closed[p.Seq] })
}

// ownZones are the zones that may still count.
func (l storedNumbers) ownZones() (zones calendar.Zones) {
	for _, c := range l.zones {
		zones = zones.Merge(c)
	}
	return zones
}

// listed is what a load brings of the numbers.
func (l storedNumbers) listed(ws messages.WSID, kind map[messages.SeqID]messages.Sequence, asked []messages.SequencePeriod) messages.WorkspaceNumbers {
	all := messages.WorkspaceNumbers{Workspace: ws, Kind: l.kind, Zones: l.ownZones()}
	known := make(map[messages.SeqID][]calendar.Date) // a game may have thousands of periods
	for _, p := range slices.SortedFunc(maps.Keys(l.numbers), messages.SequencePeriod.Compare) {
		if known[p.Seq] == nil {
			known[p.Seq] = l.periods(p.Seq)
		}
		periods := known[p.Seq]
		older := p.Period != 0 && kind[p.Seq].Restart.Keep == 0 && p.Period < periods[max(0, len(periods)-newestStored)]
		if older && !slices.Contains(all.Older, p.Seq) {
			all.Older = append(all.Older, p.Seq)
		}
		if !older || slices.Contains(asked, p) {
			all.Numbers = append(all.Numbers, messages.SequenceNumber{Seq: p.Seq, Period: p.Period, Number: l.numbers[p]})
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(l.closed)) {
		all.Closed = append(all.Closed, messages.SequencePeriod{Seq: seq, Period: l.closed[seq]})
	}
	return all
}

// checkKnown: of the periods from the oldest known one on, and of those below it that are listed, the core
// has what the log says. What it need not have it does not keep for ever.
func (w *world) checkKnown(ws *workspace) {
	truth := w.truth[ws.id]
	if got, want := ws.zones.merged(), truth.ownZones(); !slices.Equal(got, want) {
		w.t.Fatalf("workspace %d: got zones %v, want %v", ws.id, got, want)
	}
	for i := range ws.spans {
		d, seq := ws.kind.restarts[i], ws.kind.ids[i]
		if d == nil {
			continue
		}
		s := &ws.spans[i]
		if s.closedBelow != truth.closed[seq] {
			w.t.Fatalf("workspace %d, sequence %d: closed below %v, want %v", ws.id, seq, s.closedBelow, truth.closed[seq])
		}
		for _, p := range truth.periods(seq) {
			got, known := ws.in(ws.kind, i, p)
			if want := truth.numbers[messages.SequencePeriod{Seq: seq, Period: p}]; (known || p >= s.known) && got != want {
				w.t.Fatalf("workspace %d, sequence %d, period %v: got last number %d (known %v), want %d", ws.id, seq, p, got, known, want)
			}
		}
		others := ws.othersOf(seq)
		for _, o := range others {
			if want := truth.numbers[o.SequencePeriod()]; o.Period != ws.periods[i] && o.Number != want {
				w.t.Fatalf("workspace %d: got last number %v, want %d", ws.id, o, want)
			}
		}
		// Those that are pending, or awaited, or were asked for together may be more, for a while.
		if most := 3*d.room() + w.core.unflushedKeys() + w.core.inFlight.events*8 + 8; len(others) > most {
			w.t.Fatalf("workspace %d, sequence %d: got %d other periods, want at most %d", ws.id, seq, len(others), most)
		}
	}
}

// checkDateRefused: a business date is refused only if it is out of what the error says, and that is so.
func (w *world) checkDateRefused(ws messages.WSID, kind messages.WSKind, dates []calendar.Date, err error) {
	e, ok := errors.AsType[*messages.BusinessDateError](err)
	if !ok {
		return
	}
	def := w.kinds()[kind][e.Seq]
	current := w.periodAt(ws, kind, e.Seq, 0, w.core.lastTime)
	period, last := naivePeriod(def.Restart.Every, e.Date), naiveAdd(def.Restart.Every, current, def.Restart.MostAhead())
	// The drafts before one of the same message may have closed it.
	closed := period < e.First && (e.First <= w.truth[ws].closed[e.Seq] || len(dates) > 1)
	ahead := period > e.Last && e.Last <= last
	if e.Workspace != ws || !slices.Contains(dates, e.Date) || !closed && !ahead {
		w.t.Fatalf("workspace %d at %v, closed below %v: %v", ws, w.core.lastTime, w.truth[ws].closed[e.Seq], err)
	}
	w.hitIf(closed, "date refused: closed")
	w.hitIf(ahead, "date refused: too far ahead")
}

// datesOf are the business dates of a message.
func datesOf(m *messages.Append) (dates []calendar.Date) {
	for i := range m.Drafts {
		dates = append(dates, m.Drafts[i].Date)
	}
	return dates
}

// namesRestarting reports whether a message has a row under the index of a number that is no id.
func (w *world) namesRestarting(m *messages.Append) bool {
	given := givenSeqs(m)
	return slices.ContainsFunc(m.Drafts, func(d messages.Draft) bool {
		return slices.ContainsFunc(d.Records, func(r messages.DraftRecord) bool {
			return r.ID == (messages.RecordID{}) && r.Number < len(given) && w.restarts(m.Kind, given[r.Number])
		})
	})
}

func (w *world) restarts(kind messages.WSKind, seq messages.SeqID) bool {
	def := w.kinds()[kind][seq]
	return def.Restarts()
}

// givenSeqs are the sequences of a message's numbers.
func givenSeqs(m *messages.Append) (given []messages.SeqID) {
	for i := range m.Drafts {
		for _, n := range m.Drafts[i].Brought {
			given = append(given, n.Seq)
		}
		for _, wanted := range m.Drafts[i].Wanted {
			given = append(given, slices.Repeat([]messages.SeqID{wanted.Seq}, wanted.Numbers())...)
		}
	}
	return given
}

// hitPeriods counts the situations that the numbers of an event show, before it is in the truth.
func (w *world) hitPeriods(e *messages.Event) {
	truth := w.truth[e.Workspace]
	w.hitIf(e.Zone != "", "zone set")
	w.hitIf(len(truth.zones) > 0 && truth.zones[len(truth.zones)-1].Set.Equal(e.RegisteredAt.Time()) && e.Zone != "", "zone set twice at one time")
	for _, n := range e.Numbers {
		if n.Period == 0 {
			continue
		}
		r := w.kinds()[e.WorkspaceKind][n.Seq].Restart
		shown := naivePeriod(r.Every, shownAt(r.Zone, e.RegisteredAt))
		w.hitIf(e.Date == 0 && n.Period < shown && len(truth.zones) > 0, "behind by its own zone")
		w.hitIf(e.Date == 0 && n.Period > shown && len(truth.zones) > 0, "ahead by its own zone")
		periods := truth.periods(n.Seq)
		current := w.periodAt(e.Workspace, e.WorkspaceKind, n.Seq, 0, e.RegisteredAt)
		first := n.Number == w.kinds()[e.WorkspaceKind][n.Seq].Initial
		w.hitIf(first && e.Date == 0 && len(periods) > 0 && n.Period > slices.Max(periods), "restarted")
		w.hitIf(!first && n.Period < current, "late number")
		w.hitIf(first && n.Period < current, "first number of an old period")
		w.hitIf(n.Period > current, "number ahead")
		w.hitIf(e.Date == 0 && len(periods) > 0 && n.Period < slices.Max(periods), "current behind the newest")
		w.hitIf(e.Date == 0 && len(periods) > newestStored && n.Period < periods[len(periods)-newestStored], "current not stored at hand")
		w.hitIf(e.RegisteredAt > w.now && shownAt("UTC", e.RegisteredAt) > shownAt("UTC", w.now), "clock set back over midnight")
	}
}

// hitKnown counts what becomes of the periods that a workspace knows.
func (w *world) hitKnown(ws *workspace) {
	for i := range ws.spans {
		s, known := &ws.spans[i], len(ws.othersOf(ws.kind.ids[i]))
		w.hitIf(known < w.known[s] && s.closedBelow == 0, "old periods forgotten")
		w.hitIf(s.closedBelow != 0, "periods closed")
		w.known[s] = known
	}
}
