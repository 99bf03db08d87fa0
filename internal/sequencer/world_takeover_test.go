package sequencer

import (
	"cmp"
	"maps"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// takenOf are all that a draft brings along or moves.
func takenOf(d *messages.Draft) []messages.SequenceNumber { return slices.Concat(d.Brought, d.Moves) }

// placeOf is where a draft's number of an old system belongs.
func (w *world) placeOf(m *messages.Append, d *messages.Draft, n messages.SequenceNumber) messages.SequencePeriod {
	period := cmp.Or(n.Period, w.periodAt(m.Workspace, m.Kind, n.Seq, d.Date, w.core.lastTime))
	return messages.SequencePeriod{Seq: n.Seq, Period: period}
}

// checkTaken: what an event brings along, or moves, goes forward, and not above the largest number.
func (w *world) checkTaken(e *messages.Event, last map[messages.SequencePeriod]messages.Number, taken []messages.SequenceNumber) {
	for _, n := range taken {
		p, def := n.SequencePeriod(), w.kinds()[e.WorkspaceKind][n.Seq]
		if n.Number <= last[p] || n.Number < def.Initial || n.Number > mostTaken(n.Seq) {
			w.t.Fatalf("event %d of workspace %d: brought or moved to %v after %d", e.PLogOffset, e.Workspace, n, last[p])
		}
		last[p] = n.Number
	}
}

// takes counts what a draft brings along or moves into the last numbers, and reports whether there is room for it.
func (w *world) takes(last map[messages.SequencePeriod]messages.Number, m *messages.Append, d *messages.Draft, taken []messages.SequenceNumber) bool {
	all := true
	for _, n := range taken {
		p := w.placeOf(m, d, n)
		all = all && n.Number <= mostTaken(n.Seq)
		last[p] = max(last[p], min(n.Number, mostTaken(n.Seq)))
	}
	return all
}

// goesBack reports whether a message has the number that an error names, and the sequence was that far.
func (w *world) goesBack(m *messages.Append, e *messages.BackwardError) bool {
	last := maps.Clone(w.truth[m.Workspace].numbers)
	if last == nil {
		last = make(map[messages.SequencePeriod]messages.Number)
	}
	named, given := false, messages.Number(0)
	for i := range m.Drafts {
		w.count(last, m, i)
		given += wantedOf(&m.Drafts[i], e.Seq)
		for _, n := range takenOf(&m.Drafts[i]) {
			named = named || n.Seq == e.Seq && n.Number == e.Wanted
		}
	}
	most := max(last[messages.SequencePeriod{Seq: e.Seq, Period: e.Period}], w.kinds()[m.Kind][e.Seq].Initial-1)
	if e.Period != 0 {
		most += given // the answer may come in the period after the one in which it was judged
	}
	closed := e.Period < w.truth[m.Workspace].closed[e.Seq]
	return named && e.Workspace == m.Workspace && e.Wanted <= e.Last && (e.Last <= most || closed)
}

// wantedOf is how many numbers of a sequence a draft wants of the current period.
func wantedOf(d *messages.Draft, seq messages.SeqID) (n messages.Number) {
	for _, wanted := range d.Wanted {
		if wanted.Seq == seq && d.Date == 0 {
			n += messages.Number(wanted.Numbers())
		}
	}
	return n
}

// namedDates are the business dates of a message, and the periods that it names.
func namedDates(m *messages.Append) []calendar.Date {
	dates := datesOf(m)
	for i := range m.Drafts {
		for _, n := range takenOf(&m.Drafts[i]) {
			dates = append(dates, n.Period)
		}
	}
	return dates
}

// unnamed are numbers of the period of their draft's date, whatever that is.
func unnamed(taken []messages.SequenceNumber) []messages.SequenceNumber {
	taken = slices.Clone(taken)
	for i := range taken {
		taken[i].Period = 0
	}
	return taken
}

// naiveTaken reports whether numbers are those that a draft brings along or moves.
func naiveTaken(drafted, taken []messages.SequenceNumber) bool {
	if len(drafted) != len(taken) {
		return false
	}
	for i, n := range taken {
		if d := drafted[i]; d.Seq != n.Seq || d.Number != n.Number || d.Period != 0 && d.Period != n.Period {
			return false
		}
	}
	return true
}

// taken is a number of an old system: mostly ahead of the sequence.
func (g *game) takenNumber(m *messages.Append, d *messages.Draft, seq messages.SeqID) messages.SequenceNumber {
	n := messages.SequenceNumber{Seq: seq}
	def := g.kinds()[m.Kind][seq]
	if def.Restarts() && (d.Date == 0 || g.dice.roll(2, "named") == 0) {
		date := d.Date
		if date == 0 {
			date = calendar.DateOf(g.now.Time().AddDate(0, 0, [...]int{0, 0, -1, -7, -31, -62, 1, 31}[g.dice.roll(8, "days")]))
		}
		n.Period = naivePeriod(def.Restart.Every, date)
	}
	last := g.truth[m.Workspace].numbers[g.placeOf(m, d, n)]
	if g.dice.roll(6, "back") == 0 {
		n.Number = last - min(last, messages.Number(g.dice.roll(3, "behind")))
		return n
	}
	last = max(last, def.Initial-1)
	n.Number = last + min(1+messages.Number(g.dice.roll(4, "ahead")), maxOf(seq)+1-last)
	if maxOf(seq) > 1<<62 { // one above would be none
		n.Number = last + min(1+messages.Number(g.dice.roll(4, "ahead")), maxOf(seq)-last)
	}
	return n
}

// takeOver lets a draft bring numbers along and move sequences, now and then.
func (g *game) takeOver(m *messages.Append, d *messages.Draft, seqs []messages.SeqID, numbers *int) {
	if g.dice.roll(5, "taken over") > 0 {
		return
	}
	for range g.dice.roll(3, "brought") {
		d.Brought = append(d.Brought, g.takenNumber(m, d, seqs[g.dice.roll(len(seqs), "sequence")]))
	}
	for range g.dice.roll(3, "moves") {
		d.Moves = append(d.Moves, g.takenNumber(m, d, seqs[g.dice.roll(len(seqs), "sequence")]))
	}
	*numbers += len(d.Brought)
}

// hitTaken counts the situations that what an event takes over shows, before it is in the truth.
func (w *world) hitTaken(e *messages.Event) {
	periods := make(map[messages.SeqID]calendar.Date)
	for i, n := range slices.Concat(e.Numbers[:e.Brought], e.Moves) {
		last := w.truth[e.Workspace].numbers[n.SequencePeriod()]
		what := "brought along"
		if i >= int(e.Brought) {
			what = "moved"
		}
		w.hit(what)
		w.hitIf(n.Period != 0, what+" in a period")
		w.hitIf(last > 0 && n.Number > last+1, what+" over a hole")
		was, there := periods[n.Seq]
		w.hitIf(there && was != n.Period, "several periods taken over at once")
		periods[n.Seq] = n.Period
	}
}

// spoilTaken adds what is refused whatever the state.
func (g *game) spoilTaken(m *messages.Append, d *messages.Draft) error {
	wrong := messages.SequenceNumber{Seq: messages.SeqWLogOffset, Number: 1 << 40}
	want := messages.ErrUnknownSequence
	switch g.dice.roll(4, "taken") {
	case 0:
		wrong.Seq = 99
	case 1:
		wrong = messages.SequenceNumber{Seq: messages.SeqCRecordID, Period: 20260329, Number: 1 << 60}
		want = messages.ErrDraft
	case 2:
		if m.Kind == kindTill {
			wrong, want = messages.SequenceNumber{Seq: seqBill, Period: 20260302, Number: 900}, messages.ErrDraft
		}
	}
	if g.dice.roll(2, "brought") == 0 {
		d.Brought = append(slices.Clone(d.Brought), wrong)
	} else {
		d.Moves = append(slices.Clone(d.Moves), wrong)
	}
	return want
}
