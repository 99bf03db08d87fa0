package sequencer

import (
	"errors"
	"slices"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// moved asks for an event that gives workspace 1 a zone, with numbers.
func (w *world) moved(zone string, seqs ...messages.SeqID) messages.Append {
	m := w.one(1, kindTill, seqs...)
	m.Drafts[0].Zone = zone
	return m
}

// TestZoneCountsFromTheNextPeriod: the event itself and all until the end of the old zone's day have numbers of that; months
// go by the old zone until their end, whoever writes the event. Other workspaces keep their zone.
func TestZoneCountsFromTheNextPeriod(t *testing.T) {
	for name, move := range map[string]func(*world){
		"append": func(w *world) { w.wants(w.append(w.moved("America/New_York", seqReceipt)), "21/2026-06-30/1") },
		"transaction": func(w *world) {
			o := w.request(messages.Start{Workspace: 1, Kind: kindTill, Zone: "America/New_York"})
			w.settle()
			if g := w.next(o, seqReceipt).reply.(*messages.Given); g.Number != 1 || g.Period != 20260630 {
				t.Fatalf("got %+v", g)
			}
			w.commit(o)
		},
		"group": func(w *world) {
			m := w.moved("Asia/Tokyo")
			m.Drafts = append(m.Drafts, w.moved("America/New_York").Drafts[0], w.draft(seqReceipt))
			w.wants(w.append(m), "21/2026-06-30/1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
			move(w)
			w.now = moment(t, "2026-06-30T21:59:59Z")
			w.wants(w.append(w.one(1, kindTill, seqReceipt, seqBill)), "21/2026-06-30/2", "22/2026-06-01/100")
			w.now = moment(t, "2026-06-30T22:00:00Z") // midnight in Zurich; the bills go by UTC until July has begun there
			w.wants(w.append(w.one(1, kindTill, seqReceipt, seqBill)), "21/2026-07-01/1", "22/2026-06-01/101")
			w.now = moment(t, "2026-07-01T22:30:00Z") // the next day has not begun in New York
			w.wants(w.append(w.one(1, kindTill, seqReceipt, seqBill)), "21/2026-07-01/2", "22/2026-07-01/100")
			w.wants(w.append(w.one(3, kindTill, seqReceipt)), "21/2026-07-02/1")
			for range 2 { // what is cached, and what is loaded
				w.now = moment(t, "2026-07-02T03:59:59Z")
				w.wants(w.append(w.one(1, kindTill, seqReceipt)), map[bool]string{false: "21/2026-07-01/3", true: "21/2026-07-01/4"}[w.core.epoch > 1])
				w.crash()
				w.settle()
			}
			w.now = moment(t, "2026-07-02T04:00:00Z")
			w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-07-02/1")
			w.finish()
		})
	}
}

// TestZonesRace: two that move a workspace in one batch, with numbers beside them: the last one counts, and the numbers
// are those of the day that had begun.
func TestZonesRace(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T21:30:00Z")
	calls := w.batched(w.moved("America/New_York", seqReceipt), w.one(1, kindTill, seqReceipt), w.moved("Pacific/Auckland", seqReceipt), w.one(1, kindTill, seqReceipt))
	for i, want := range []string{"21/2026-06-30/1", "21/2026-06-30/2", "21/2026-06-30/3", "21/2026-06-30/4"} {
		w.wants(calls[i], want)
	}
	w.now = moment(t, "2026-06-30T22:00:00Z") // it is 10:00 of 1 July in Auckland
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-07-01/1")
	w.now = moment(t, "2026-07-01T12:00:00Z")
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-07-02/1")
	// A clock that is set back brings back neither the day nor the zone.
	w.now, w.setBack = moment(t, "2026-06-30T21:59:59Z"), true
	w.wants(w.append(w.moved("America/New_York", seqReceipt)), "21/2026-07-02/2")
	w.crash()
	w.settle()
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-07-02/3")
	w.finish()
}

// TestZoneRefused: a zone that is none, or one change too many, is refused, and leaves nothing.
func TestZoneRefused(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	for _, name := range []string{"Mars/Olympus_Mons", "Local", "../zone", "europe/Zurich"} {
		c := w.append(w.moved(name, seqReceipt))
		o := w.request(messages.Start{Workspace: 1, Kind: kindTill, Zone: name})
		w.settle()
		w.mustRefuse(c, calendar.ErrZone)
		w.mustRefuse(o.start, calendar.ErrZone)
	}
	for i := range calendar.MaxZoneChanges {
		w.now++
		w.done(w.append(w.moved([]string{"Asia/Tokyo", "Europe/Zurich"}[i%2])))
	}
	w.now++
	group := w.one(1, kindTill, seqReceipt)
	group.Drafts = append(group.Drafts, w.moved("Asia/Tokyo", seqReceipt).Drafts[0])
	c := w.append(group)
	o := w.request(messages.Start{Workspace: 1, Kind: kindTill, Zone: "Asia/Tokyo"})
	w.settle()
	w.mustRefuse(c, calendar.ErrZoneChange)
	w.mustRefuse(o.start, calendar.ErrZoneChange)
	// The zone that it has already is no change.
	w.wants(w.append(w.moved("Europe/Zurich", seqReceipt)), "21/2026-06-30/1")
	w.now = moment(t, "2027-07-04T12:00:00Z")
	w.wants(w.append(w.moved("Asia/Tokyo", seqReceipt)), "21/2027-07-04/1")
	w.finish()
}

// TestZoneOfAnotherOwner: a partition that was taken over finds a zone in the store that was set later than it is. It does not
// say that the zone has changed too often.
func TestZoneOfAnotherOwner(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	later := messages.ZoneChange("Asia/Tokyo", w.now+1)
	r := Reservation{workspace: 1, lasts: lasts{zones: newZones(calendar.Zones{later}, later)}}
	for at, want := range map[messages.Timestamp]error{w.now: messages.ErrFenced, w.now + 1: nil} {
		if err := r.setZone("Europe/Zurich", at); !errors.Is(err, want) || errors.Is(err, calendar.ErrZoneChange) {
			t.Errorf("at %v: got %v, want %v", at, err, want)
		}
	}
}

// TestOtherZoneIsAnotherAppend: with the same id and another zone it is not the same.
func TestOtherZoneIsAnotherAppend(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	m := w.moved("Asia/Tokyo", seqReceipt)
	m.DedupID[0] = 7
	w.done(w.append(m))
	other := m
	other.Drafts = []messages.Draft{m.Drafts[0]}
	other.Drafts[0].Zone = "Europe/Zurich"
	c := w.append(other)
	w.settle()
	w.mustRefuse(c, messages.ErrDedupMismatch)
	if again := w.done(w.append(m)); !again.Repeated {
		t.Fatalf("got %+v, want it repeated", again)
	}
	w.finish()
}

// TestUnknownZone: a zone that only another machine knows keeps nobody from replaying the log. No period is made up:
// numbers of sequences that restart are refused, and everything else is taken.
func TestUnknownZone(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	w.done(w.append(w.moved("Asia/Tokyo", seqReceipt)))
	elsewhere := func(e *messages.Event) {
		if e.Zone != "" {
			e.Zone = "Mars/Olympus_Mons"
		}
	}
	elsewhere(&w.log[0])
	raised := make(map[messages.WSID]storedNumbers)
	for i := range w.log {
		raiseTo(raised, &w.log[i], w.kinds())
	}
	w.truth = raised
	for range 2 { // of what is replayed, and of what is stored
		w.crash()
		w.settle()
		w.mustBe(messages.StateNormal)
		c := w.append(w.one(1, kindTill, seqReceipt))
		o := w.request(messages.Start{Workspace: 1, Kind: kindTill})
		dated := w.append(w.dated(20260630, seqBill))
		w.settle()
		for _, refused := range []*call{c, o.start, dated} {
			w.mustRefuse(refused, messages.ErrUnknownZone)
			if err := refusalOf(refused); errors.Is(err, calendar.ErrZone) {
				t.Errorf("got %v: it is not the caller who is wrong", err)
			}
		}
		w.done(w.append(w.one(1, kindTill, messages.SeqCRecordID)))
		w.wants(w.append(w.one(3, kindTill, seqReceipt)), map[bool]string{false: "21/2026-06-30/1", true: "21/2026-06-30/2"}[len(w.log) > 3])
		w.quiesce()
	}
	w.finish()
}

// TestRepeatedWithAZoneThatIsUnknownHere: an append that another machine has written is recognised by one that does not
// know its zone. Its caller must not take it for refused.
func TestRepeatedWithAZoneThatIsUnknownHere(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	m := w.moved("Asia/Tokyo", seqReceipt)
	m.DedupID = messages.DedupID{1}
	first := w.append(m)
	w.done(first)
	m.Drafts = slices.Clone(m.Drafts)
	m.Drafts[0].Zone, w.log[0].Zone = "Mars/Olympus_Mons", "Mars/Olympus_Mons"
	again := w.append(m)
	w.settle()
	if a, ok := again.reply.(*messages.Appended); !ok || !a.Repeated || a.WLogOffset != 1 {
		t.Errorf("got %+v, want the first answer", again.reply)
	}
	m.DedupID = messages.DedupID{2}
	other := w.append(m)
	w.settle()
	w.mustRefuse(other, calendar.ErrZone)
	m.Drafts[0].Zone = "../zone"
	m.DedupID = messages.DedupID{1}
	w.mustRefuse(w.append(m), calendar.ErrZone)
}

// TestZoneOfARefusedAppend: a zone goes back with the numbers when a draft behind it is refused, in the middle of a batch.
func TestZoneOfARefusedAppend(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	group := w.moved("America/New_York", seqReceipt)
	group.Drafts = append(group.Drafts, w.draft(seqRound, seqRound, seqRound, seqRound))
	calls := w.batched(w.one(1, kindTill, seqReceipt), group, w.one(1, kindTill, seqReceipt))
	w.wants(calls[0], "21/2026-06-30/1")
	w.mustRefuse(calls[1], messages.ErrOverflow)
	w.wants(calls[2], "21/2026-06-30/2")
	w.now = moment(t, "2026-07-01T22:00:00Z")
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-07-02/1")
	w.finish()
}

// TestZoneOfTheTail: a zone that is only in the log counts for whoever looks its workspace up after a replay.
func TestZoneOfTheTail(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	w.done(w.append(w.moved("America/New_York")))
	w.crash()
	w.settle()
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-06-30/1")
	if len(w.flushes) > 0 {
		t.Fatalf("got %d flushes, want the zone to be in the log only", len(w.flushes))
	}
	w.now = moment(t, "2026-07-01T22:30:00Z")
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-07-01/1")
	w.finish()
}
