package verify_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

// newPeriods returns a store with receipts and cases of workspace 3, of which the last event is not projected:
// the receipts of 2026-03-28 and of the day after it are closed.
func newPeriods(t *testing.T) storage.Store {
	t.Helper()
	m, err := storagetest.NewMemory(storagetest.Descriptor(messages.TrustNone))
	if err != nil {
		t.Fatal(err)
	}
	p := storagetest.Take(t, m, 0)
	for _, day := range []calendar.Date{20260328, 20260329, 20260330, 20260331, 20260330, 20260401} {
		p.Append(t, storagetest.Spec{
			Workspace: 3, Give: []messages.SeqID{storagetest.SeqReceipt, storagetest.SeqCase}, Day: day, Dated: true,
		})
	}
	p.FlushTo(t, 6)
	return m
}

func TestPeriodsAreFaultless(t *testing.T) {
	if r := run(t, newPeriods(t), verify.Options{}); r.Err() != nil {
		t.Error(r)
	}
}

func TestFaultsOfPeriods(t *testing.T) {
	event := func(offset messages.PLogOffset, alter func(*messages.Event)) doctored {
		return change(0, offset, alter)
	}
	stored := func(alter func(*storage.WorkspaceNumbers)) doctored { return doctored{numbers: alter} }
	closed := func(p messages.SequencePeriod) doctored {
		return stored(func(n *storage.WorkspaceNumbers) { n.Closed[0] = p })
	}
	numbers := place{verify.CheckNumbers, 0, 0, "workspace 3: stored numbers are"}
	for _, c := range []planted{
		{"a period begins too high", event(2, func(e *messages.Event) { e.Numbers[0].Number = 2 }),
			place{verify.CheckSequence, 0, 2, "sequence 19 in 2026-03-29: number is 2, want 1"}},
		{"a gap in a period", event(5, func(e *messages.Event) { e.Numbers[0].Number = 3 }),
			place{verify.CheckSequence, 0, 5, "sequence 19 in 2026-03-30: number is 3, want 2"}},
		{"a number twice in a period", event(5, func(e *messages.Event) { e.Numbers[0].Number = 1 }),
			place{verify.CheckSequence, 0, 5, "sequence 19 in 2026-03-30: number is 1, want 2"}},
		{"a period that is none", event(1, func(e *messages.Event) { e.Numbers[1].Period = 20260302 }),
			place{verify.CheckEvent, 0, 1, "sequence 20: got period 2026-03-02, want that of 2026-03-28"}},
		{"no period", event(1, func(e *messages.Event) { e.Numbers[0].Period, e.Date = 0, 0 }),
			place{verify.CheckEvent, 0, 1, "sequence 19: got period none"}},
		{"a period of another business date", event(1, func(e *messages.Event) { e.Date = 20260329 }),
			place{verify.CheckEvent, 0, 1, "sequence 19: got period 2026-03-28, want that of 2026-03-29"}},
		{"a period in which no clock was at the registration time", event(1, func(e *messages.Event) { e.Date = 0 }),
			place{verify.CheckEvent, 0, 1, "sequence 19: got period 2026-03-28 of an event that was registered at 1970-01-01T00:00:00.000001Z"}},
		{"a period where none belongs", event(1, func(e *messages.Event) { e.Numbers[0].Seq = storagetest.SeqOrder }),
			place{verify.CheckEvent, 0, 1, "it never restarts"}},
		{"a record of a sequence that restarts", event(1, func(e *messages.Event) {
			e.Records = append(e.Records, messages.Record{ID: messages.RecordID{Seq: storagetest.SeqReceipt, Number: 1}, New: true})
		}), place{verify.CheckEvent, 0, 1, "record 19/1 of a sequence that restarts"}},

		{"a stored number of a period too high", stored(func(n *storage.WorkspaceNumbers) { n.Numbers[1].Number++ }), numbers},
		{"a stored number of another period", stored(func(n *storage.WorkspaceNumbers) { n.Numbers[1].Period++ }), numbers},
		{"a stored number of a period missing", stored(func(n *storage.WorkspaceNumbers) { n.Numbers = slices.Delete(n.Numbers, 1, 2) }), numbers},
		{"a stored number of a closed period", stored(func(n *storage.WorkspaceNumbers) {
			n.Numbers = slices.Insert(n.Numbers, 1, messages.SequenceNumber{Seq: storagetest.SeqReceipt, Period: 20260328, Number: 1})
		}), numbers},
		{"what is closed is forgotten", stored(func(n *storage.WorkspaceNumbers) { n.Closed = nil }), numbers},
		{"the newest period is closed", closed(messages.SequencePeriod{Seq: storagetest.SeqReceipt, Period: 20260401}),
			place{verify.CheckNumbers, 0, 0, "sequence 19 in 2026-04-01 is the first that is not closed, but the newest is sequence 19 in 2026-03-31"}},
		{"a sequence that never restarts is closed", closed(messages.SequencePeriod{Seq: storagetest.SeqOrder, Period: 20260330}),
			place{verify.CheckNumbers, 0, 0, "never restarts"}},
		{"what is closed ends within a period", closed(messages.SequencePeriod{Seq: storagetest.SeqCase, Period: 20260302}),
			place{verify.CheckNumbers, 0, 0, "want the first day of a period"}},
		{"WLog() has another period", doctored{wlogs: func(_ messages.WSID, events []messages.Event) []messages.Event {
			events[1].Numbers[0].Period++
			return events
		}}, place{verify.CheckWLog, 0, 2, "event 2 of WLog differs"}},
		{"WLog() has another business date", doctored{wlogs: func(_ messages.WSID, events []messages.Event) []messages.Event {
			events[1].Date++
			return events
		}}, place{verify.CheckWLog, 0, 2, "event 2 of WLog differs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.d.Store = newPeriods(t)
			c.check(t)
		})
	}
}

// check finds the fault that is planted.
func (c *planted) check(t *testing.T) {
	t.Helper()
	r := run(t, c.d, verify.Options{})
	found := slices.ContainsFunc(r.Faults, func(f verify.Fault) bool {
		return f.Check == c.at.check && f.Partition == c.at.partition && f.PLogOffset == c.at.offset && strings.Contains(f.Text, c.at.words)
	})
	if !found || !errors.Is(r.Err(), verify.ErrFaults) {
		t.Errorf("want a fault %+v, got %s", c.at, r)
	}
}

// newZones returns a store with workspace 3, whose second zone is not projected.
func newZones(t *testing.T) storage.Store {
	t.Helper()
	m, err := storagetest.NewMemory(storagetest.Descriptor(messages.TrustNone))
	if err != nil {
		t.Fatal(err)
	}
	p := storagetest.Take(t, m, 0)
	p.Append(t, storagetest.Spec{Workspace: 3, Zone: "Europe/Zurich"}, storagetest.Spec{Workspace: 3}, storagetest.Spec{Workspace: 3, Zone: "Asia/Tokyo"})
	p.FlushTo(t, 3)
	return m
}

func TestFaultsOfZones(t *testing.T) {
	if r := run(t, newZones(t), verify.Options{}); r.Err() != nil {
		t.Fatal(r)
	}
	for _, c := range []planted{
		{"no stored zone", doctored{numbers: func(n *storage.WorkspaceNumbers) { n.Zones = nil }},
			place{verify.CheckNumbers, 0, 0, "workspace 3: stored time zones are []"}},
		{"a zone that is not before the checkpoint", doctored{numbers: func(n *storage.WorkspaceNumbers) {
			n.Zones = messages.MergeZone(n.Zones, "Asia/Tokyo", 3)
		}}, place{verify.CheckNumbers, 0, 0, "workspace 3: stored time zones are"}},
		{"Tail() without a zone", doctored{tail: func(all []messages.Numbering) []messages.Numbering {
			for i := range all {
				all[i].Zone = ""
			}
			return all
		}}, place{verify.CheckTail, 0, 3, "tail differs"}},
		{"WLog() has another zone", doctored{wlogs: func(_ messages.WSID, events []messages.Event) []messages.Event {
			events[0].Zone = "Asia/Tokyo"
			return events
		}}, place{verify.CheckWLog, 0, 1, "event 1 of WLog differs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.d.Store = newZones(t)
			c.check(t)
		})
	}
}
