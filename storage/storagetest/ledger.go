package storagetest

import (
	"cmp"
	"maps"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// ledger holds the last numbers given out, per workspace.
type ledger map[messages.WSID]*account

// account is what is known of one workspace.
type account struct {
	kind messages.Kind
	// last has all periods that ever had a number, closed ones too.
	last map[messages.SequencePeriod]messages.Number
	// zones are the time zones that it has got.
	zones calendar.Zones
}

func newAccount(kind messages.Kind) *account {
	return &account{kind: kind, last: make(map[messages.SequencePeriod]messages.Number)}
}

func (a *account) clone() *account {
	return &account{kind: a.kind, last: maps.Clone(a.last), zones: a.zones}
}

// sequence returns the definition of one of the kind's sequences.
func (a *account) sequence(id messages.SeqID) (messages.Sequence, bool) {
	all := a.kind.All()
	i := slices.IndexFunc(all, func(s messages.Sequence) bool { return s.ID == id })
	if i < 0 {
		return messages.Sequence{}, false
	}
	return all[i], true
}

// raise merges a number by maximum; one below the initial value is ignored.
func (a *account) raise(n messages.SequenceNumber) {
	if s, ok := a.sequence(n.Seq); ok && n.Number >= s.Initial {
		a.last[n.SequencePeriod()] = max(a.last[n.SequencePeriod()], n.Number)
	}
}

// next gives out a number, on a day if the sequence restarts.
func (a *account) next(id messages.SeqID, day calendar.Date) messages.SequenceNumber {
	n := messages.SequenceNumber{Seq: id, Number: 1}
	s, ok := a.sequence(id)
	if !ok {
		// A test of unknown sequences wants some number.
		return n
	}
	if s.Restarts() {
		n.Period = s.Restart.PeriodOf(day)
	}
	n.Number = max(a.last[n.SequencePeriod()]+1, s.Initial)
	a.raise(n)
	return n
}

// Ahead is a number of a sequence that is By above the next one, on a day if the sequence restarts. Zero means the
// event's day, and so does any if the event has a business date.
type Ahead struct {
	Seq messages.SeqID
	By  messages.Number
	Day calendar.Date
}

// ahead takes a number that the sequence would not give next, in the period of the event's business date if it has one.
func (a *account) ahead(to Ahead, day, date calendar.Date) messages.SequenceNumber {
	n := a.next(to.Seq, cmp.Or(date, to.Day, day))
	n.Number += to.By
	a.raise(n)
	return n
}

// all lists the last numbers of all periods.
func (a *account) all() (list []messages.SequenceNumber) {
	for _, p := range slices.SortedFunc(maps.Keys(a.last), messages.SequencePeriod.Compare) {
		list = append(list, messages.SequenceNumber{Seq: p.Seq, Period: p.Period, Number: a.last[p]})
	}
	return list
}

// merge takes over what an event says.
func (l ledger) merge(d *messages.Descriptor, n messages.Numbering) {
	a := l[n.Workspace]
	if a == nil {
		kind, _ := d.Kind(n.WorkspaceKind)
		a = newAccount(kind)
		l[n.Workspace] = a
	}
	a.raise(messages.SequenceNumber{Seq: messages.SeqWLogOffset, Number: messages.Number(n.WLogOffset)})
	for _, given := range n.Numbers {
		a.raise(given)
	}
	a.zones = messages.MergeZone(a.zones, n.Zone, n.RegisteredAt)
}

// numbers returns the account as a store lists it.
func (l ledger) numbers(ws messages.WSID) storage.WorkspaceNumbers {
	out := storage.WorkspaceNumbers{Workspace: ws}
	a := l[ws]
	if a == nil {
		return out
	}
	out.Kind, out.Numbers, out.Zones = a.kind.ID, a.all(), a.zones
	for _, s := range a.kind.All() {
		if below := s.Restart.ClosedBelow(periodsOf(out.Numbers, s.ID)); below != 0 {
			out.Closed = append(out.Closed, messages.SequencePeriod{Seq: s.ID, Period: below})
			out.Numbers = slices.DeleteFunc(out.Numbers, func(n messages.SequenceNumber) bool { return n.Seq == s.ID && n.Period < below })
		}
	}
	return out
}

// changesSince returns what l has and before has not, as a Flush lists it.
func (l ledger) changesSince(before ledger) []storage.WorkspaceNumbers {
	var changes []storage.WorkspaceNumbers
	for _, ws := range slices.Sorted(maps.Keys(l)) {
		change := storage.WorkspaceNumbers{Workspace: ws, Kind: l[ws].kind.ID, Numbers: l[ws].all()}
		if was := before[ws]; was != nil {
			change.Kind = 0
			change.Numbers = slices.DeleteFunc(change.Numbers, func(n messages.SequenceNumber) bool { return was.last[n.SequencePeriod()] == n.Number })
		}
		changes = append(changes, change)
	}
	return changes
}

// cloneEvents returns copies that share nothing with the events.
func cloneEvents(events []messages.Event) []messages.Event {
	clones := make([]messages.Event, len(events))
	for i := range events {
		clones[i] = cloneEvent(&events[i])
	}
	return clones
}

// cloneEvent returns a copy that shares nothing with the event.
func cloneEvent(e *messages.Event) messages.Event {
	c := *e
	c.Numbers, c.Moves = slices.Clone(e.Numbers), slices.Clone(e.Moves)
	c.Body = slices.Clone(e.Body)
	c.Records = slices.Clone(e.Records)
	for i := range c.Records {
		c.Records[i].Data = slices.Clone(c.Records[i].Data)
	}
	c.Sections = slices.Clone(e.Sections)
	for i := range c.Sections {
		c.Sections[i].Data = slices.Clone(c.Sections[i].Data)
	}
	return c
}
