package tests

import (
	"slices"
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// workspacePeriod is where numbers are unique.
type workspacePeriod struct {
	ws messages.WSID
	messages.SequencePeriod
}

// checkAll checks all workspaces, and returns the last number of each of their periods.
func (m *midnight) checkAll(t *testing.T, store storage.Store) map[workspacePeriod]messages.Number {
	t.Helper()
	last := make(map[workspacePeriod]messages.Number)
	logs := make([][]messages.Event, midnightWorkspaces)
	for ws := range logs {
		for e, err := range store.WLog(limit(t), messages.WSID(ws), 1) {
			check(t, err)
			logs[ws] = append(logs[ws], e)
			m.checkEvent(t, &e, last)
		}
	}
	m.checkAnswers(t, logs)
	m.checkDates(t, last)
	return last
}

// checkEvent: each number follows the one before it in its period, from 1 on: none is doubled, none is missing. The
// period is that of the business date, or of the time.
func (m *midnight) checkEvent(t *testing.T, e *messages.Event, last map[workspacePeriod]messages.Number) {
	for _, n := range e.Numbers {
		at := workspacePeriod{e.Workspace, n.SequencePeriod()}
		if n.Number != last[at]+1 {
			t.Fatalf("workspace %d, event %d: got %v after %d", e.Workspace, e.WLogOffset, n, last[at])
		}
		last[at] = n.Number
		if want := m.periodOf(t, n.Seq, e); n.Period != want {
			t.Fatalf("workspace %d, event %d of %v with business date %v: got %v, want period %v",
				e.Workspace, e.WLogOffset, e.RegisteredAt, e.Date, n, want)
		}
	}
}

// periodOf is the period that an event's numbers have: by the calendar, and days by what is known of the date.
func (m *midnight) periodOf(t *testing.T, seq messages.SeqID, e *messages.Event) calendar.Date {
	r := m.rules[seq]
	if r.Every == calendar.Never || e.Date != 0 {
		return r.PeriodOf(e.Date)
	}
	if own, moved := m.own[e.Workspace]; moved {
		return r.PeriodOf(own.dateAt(e.RegisteredAt.Time()))
	}
	zone := must(calendar.LoadZone(r.Zone))(t)
	period, _ := calendar.Zones(nil).PeriodAt(r.Rule, zone, e.RegisteredAt.Time())
	if known := r.PeriodOf(m.dateAt(e.RegisteredAt.Time())); period != known {
		t.Errorf("%v in %v: got %v, want %v", e.RegisteredAt, r.Zone, period, known)
	}
	return period
}

// dateAt is the local date, by what is known of it.
func (d *localDate) dateAt(at time.Time) calendar.Date {
	switch {
	case at.Before(d.begin):
		return d.before
	case at.Before(d.end):
		return d.date
	}
	return d.after
}

// checkAnswers: each event is that of one answer, which says the same.
func (m *midnight) checkAnswers(t *testing.T, logs [][]messages.Event) {
	t.Helper()
	answered := make([]int, len(logs))
	for _, a := range m.answers {
		answered[a.ws]++
		if n := len(logs[a.ws]); a.first < 1 || int(a.first) > n {
			t.Fatalf("workspace %d: got an answer about event %d of %d", a.ws, a.first, n)
		}
		if e := &logs[a.ws][a.first-1]; e.RegisteredAt != a.at || !slices.Equal(e.Numbers, a.numbers) {
			t.Errorf("workspace %d, event %d: got %v at %v, told was %v at %v", a.ws, a.first, e.Numbers, e.RegisteredAt, a.numbers, a.at)
		}
	}
	for ws := range logs {
		if answered[ws] != len(logs[ws]) {
			t.Errorf("workspace %d: got %d events, %d were told", ws, len(logs[ws]), answered[ws])
		}
	}
}

// checkDates: each workspace has numbered three dates, and no other.
func (m *midnight) checkDates(t *testing.T, last map[workspacePeriod]messages.Number) {
	t.Helper()
	want := []calendar.Date{m.before, m.date, m.after}
	got := make(map[messages.WSID][]calendar.Date)
	for at := range last {
		if at.Seq == seqReceipt {
			got[at.ws] = append(got[at.ws], at.Period)
		}
	}
	for ws := range messages.WSID(midnightWorkspaces) {
		if slices.Sort(got[ws]); !slices.Equal(got[ws], want) {
			t.Errorf("workspace %d: got receipts of %v, want %v", ws, got[ws], want)
		}
	}
}
