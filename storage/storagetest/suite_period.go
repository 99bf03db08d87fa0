package storagetest

import (
	"slices"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

var periodChecks = []check{
	{"NumbersOfPeriods", eachLevel, checkPeriods},
	{"PeriodsAreClosedByTheFlush", anyLevel, checkPeriodsClosed},
	{"ClosedPeriodsStayClosed", anyLevel, checkPeriodsStayClosed},
	{"OlderPeriodsAreFound", anyLevel, checkPeriodsOlder},
	{"FlushChecksNumbersOfPeriods", anyLevel, checkPeriodsFlushed},
	{"AppendRefusesWrongPeriods", anyLevel, checkPeriodsRefused},
	{"ZonesOfWorkspaces", eachLevel, checkZones},
}

// on is an event of workspace 3 that gets numbers on a day.
func on(day calendar.Date, seqs ...messages.SeqID) Spec {
	return Spec{Workspace: 3, Give: seqs, Day: day}
}

// checkPeriods: each period has last numbers of its own, in order, merged by maximum, before and
// after a flush, also when the store is opened again or its projections are made anew.
func checkPeriods(e *env) {
	e.open()
	p := e.take(0)
	both := []messages.SeqID{SeqReceipt, SeqCase, SeqReceipt, SeqInvoice}
	first := on(20260330, both...)
	first.At = messages.TimestampOf(first.Day.Time()) // those behind it are decided by their registration times, too
	e.append(p, first, on(20260330, both...), on(20260331, both...), on(20260401, SeqCase))
	late := on(20260330, both...)
	late.Dated = true
	e.append(p, late, Spec{Workspace: 6, Kind: KindCompany, Give: both[:2], Day: 20260331})
	for checkpoint := range p.last + 1 {
		e.flush(p, checkpoint+1)
		e.same("after a flush")
		e.reopen()
		e.same("after reopening")
	}
	for _, way := range e.copies() {
		e.goOnIn(way)
		e.same("in a copy: " + way.Name)
	}
	e.append(p, on(20260331, both...))
	e.crash()
	e.flushAll(p)
}

// checkPeriodsClosed: the flush that brings a newer period closes old ones, and forgets their
// numbers, in one step. The two newest are kept, and the one before the newest.
func checkPeriodsClosed(e *env) {
	e.open()
	p := e.take(0)
	for i, c := range []struct{ day, closedBelow calendar.Date }{
		{20260330, 0}, {20260401, 0}, {20260402, 20260401}, {20260402, 20260401},
		{20260405, 20260402}, {20260406, 20260405}, {20260403, 20260405},
	} {
		e.append(p, on(c.day, SeqReceipt, SeqCase), on(c.day, SeqReceipt))
		e.flushAll(p)
		e.same("after a flush")
		n, err := e.store.Numbers(e.Context(), 3, messages.SequencePeriod{Seq: SeqReceipt, Period: 20260330})
		if err != nil {
			e.Fatalf("numbers: %v", err)
		}
		var want []messages.SequencePeriod
		if c.closedBelow != 0 {
			want = []messages.SequencePeriod{{Seq: SeqReceipt, Period: c.closedBelow}}
		}
		if !slices.Equal(n.Closed, want) {
			e.Fatalf("flush %d: got closed %v, want %v", i, n.Closed, want)
		}
		e.reopen()
	}
}

// checkPeriodsStayClosed: events of periods that are closed were appended before: whether a flush lists their
// numbers or not, the periods stay closed.
func checkPeriodsStayClosed(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, on(20260330, SeqReceipt), on(20260331, SeqReceipt), on(20260401, SeqReceipt))
	e.flushAll(p)
	for _, listed := range []bool{true, false} {
		e.append(p, on(20260330, SeqReceipt), on(20260328, SeqReceipt), on(20260401, SeqReceipt))
		f := p.BuildFlush(p.last + 1)
		if !listed {
			f.Numbers[0].Numbers = slices.DeleteFunc(f.Numbers[0].Numbers, func(n messages.SequenceNumber) bool {
				return n.Period != 0 && n.Period < 20260331
			})
		}
		if err := e.store.Flush(e.Context(), f); err != nil {
			e.Fatalf("flush with numbers of closed periods, listed %v: %v", listed, err)
		}
		p.Flushed(f.Checkpoint)
		e.model.partitions[0].checkpoint = f.Checkpoint
		e.same("after a flush with numbers of closed periods")
	}
}

// checkPeriodsOlder: of a sequence that keeps all periods those that are not listed are found, and
// go on, when they are asked for.
func checkPeriodsOlder(e *env) {
	e.open()
	p := e.take(0)
	month := calendar.Rule{Every: calendar.Month}
	for i := range 20 {
		e.append(p, on(month.Add(FirstDay, i), SeqCase))
		if i%3 == 0 {
			e.flushAll(p)
		}
	}
	e.flushAll(p)
	e.same("with many periods")
	for _, i := range []int{3, 0, -5, 12, 19} {
		e.append(p, on(month.Add(FirstDay, i), SeqCase, SeqCase), on(month.Add(FirstDay, i), SeqCase))
	}
	e.flushAll(p)
	e.same("with more numbers in older periods")
	e.reopen()
	e.same("after reopening")
	ask := []messages.SequencePeriod{
		{Seq: SeqCase, Period: 20251001}, {Seq: SeqCase, Period: 20260301}, {Seq: SeqCase, Period: 20251101},
		{Seq: SeqCase, Period: 20260301}, {Seq: SeqCase, Period: 99990101}, {Seq: SeqReceipt, Period: 20260329}, {Seq: 60000, Period: 20260301},
	}
	n, err := e.store.Numbers(e.Context(), 3, ask...)
	if err != nil {
		e.Fatalf("numbers of older periods: %v", err)
	}
	given := func(p messages.SequencePeriod) messages.Number { return numberOf(n.Numbers, p) }
	if given(ask[0]) != InitialCase+2 || given(ask[1]) != InitialCase+3 {
		e.Fatalf("numbers of older periods: got %v, want %v to have %d and %v to have %d", n.Numbers, ask[0], InitialCase+2, ask[1], InitialCase+3)
	}
	for _, p := range ask[4:] {
		if given(p) != 0 {
			e.Fatalf("numbers of periods that have none: got %v", n.Numbers)
		}
	}
	if !slices.IsSortedFunc(n.Numbers, messages.SequenceNumber.ComparePlace) {
		e.Fatalf("numbers of older periods: got %v, want them ordered", n.Numbers)
	}
}

// checkPeriodsFlushed: the numbers of each period must be what the log says.
func checkPeriodsFlushed(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, on(20260330, SeqReceipt, SeqCase), on(20260331, SeqReceipt), on(20260401, SeqReceipt, SeqCase))
	e.flush(p, 3)
	e.append(p, on(20260330, SeqReceipt))
	good := p.BuildFlush(p.last + 1)
	numbers := good.Numbers[0].Numbers
	for i := range numbers {
		for what, spoil := range map[string]func(l []messages.SequenceNumber) []messages.SequenceNumber{
			"too high": func(l []messages.SequenceNumber) []messages.SequenceNumber { l[i].Number++; return l },
			"too low":  func(l []messages.SequenceNumber) []messages.SequenceNumber { l[i].Number--; return l },
			"missing":  func(l []messages.SequenceNumber) []messages.SequenceNumber { return slices.Delete(l, i, i+1) },
		} {
			f := good
			f.Numbers = cloneNumbers(good.Numbers)
			f.Numbers[0].Numbers = spoil(f.Numbers[0].Numbers)
			e.refused("a flush with a number "+what, e.store.Flush(e.Context(), f), storage.ErrNumbers)
		}
	}
	f := good
	f.Numbers = cloneNumbers(good.Numbers)
	f.Numbers[0].Numbers = append(f.Numbers[0].Numbers, messages.SequenceNumber{Seq: SeqCase, Period: 20260501, Number: InitialCase})
	e.refused("a flush with a period too many", e.store.Flush(e.Context(), f), storage.ErrNumbers)
	e.flushAll(p)
}

// periodFlaws are wrong periods of an event of workspace 3.
var periodFlaws = []flaw{
	{"a period of a sequence that never restarts", func(e *messages.Event) { giveIn(e, SeqOrder, 20260329, 9) }, invalid},
	{"no period", func(e *messages.Event) { giveIn(e, SeqReceipt, 0, 1) }, invalid},
	{"a day that there is not", func(e *messages.Event) { giveIn(e, SeqReceipt, 20260230, 1) }, invalid},
	{"a period that begins on another day", func(e *messages.Event) { giveIn(e, SeqCase, 20260302, InitialCase) }, invalid},
	{"another period than the business date's", func(e *messages.Event) {
		e.Date = 20260329
		giveIn(e, SeqCase, 20260401, InitialCase)
	}, invalid},
	{"a business date that there is not", func(e *messages.Event) { e.Date = 20260230 }, invalid},
	{"a time zone that can be none", func(e *messages.Event) { e.Zone = "../zone" }, invalid},
	{"a number below the initial one of a period", func(e *messages.Event) {
		e.Date = 20260329
		giveIn(e, SeqCase, 20260301, InitialCase-1)
	}, invalid},
	{"a period in which no clock was at the registration time", func(e *messages.Event) {
		giveIn(e, SeqReceipt, calendar.Rule{Every: calendar.Day}.Add(calendar.DateOf(e.RegisteredAt.Time()), 3), 1)
	}, invalid},
	{"a new record of a sequence that restarts", func(e *messages.Event) { write(e, SeqReceipt, 1, true) }, invalid},
	{"a record of a sequence that restarts", func(e *messages.Event) { write(e, SeqReceipt, 1, false) }, invalid},
}

func giveIn(e *messages.Event, seq messages.SeqID, period calendar.Date, n messages.Number) {
	e.Numbers = append(e.Numbers, messages.SequenceNumber{Seq: seq, Period: period, Number: n})
}

// checkPeriodsRefused: an event with a wrong period is refused, and leaves nothing.
func checkPeriodsRefused(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, on(20260330, SeqReceipt, SeqCase))
	for _, f := range periodFlaws {
		b := p.Build(on(20260331, SeqInvoice), on(20260331, SeqInvoice))
		f.spoil(&b.Events[1])
		err := e.store.Append(e.Context(), b)
		e.refused(f.name, err, f.want...)
		e.names(f.name, err, b.Events[1].PLogOffset)
	}
	e.append(p, on(20260331, SeqReceipt, SeqCase))
}

// checkZones: a workspace has the time zones that its events have set, as far as they may still count: also those that
// nobody here knows, those of one instant, and more than anybody would set.
func checkZones(e *env) {
	e.open()
	p := e.take(0)
	day := messages.Timestamp(24 * time.Hour / time.Microsecond)
	at := day
	set := func(ws messages.WSID, zone string, later messages.Timestamp) Spec {
		at += later
		return Spec{Workspace: ws, Zone: zone, At: at}
	}
	e.append(p, set(3, "Europe/Zurich", 1), set(3, "Asia/Tokyo", 0), set(6, "Mars/Olympus_Mons", 1), set(3, "", 1), set(3, "Asia/Tokyo", 1))
	e.append(p, set(3, "Europe/Zurich", 400*day), set(0, "UTC", 0))
	for checkpoint := range p.last + 1 {
		e.flush(p, checkpoint+1)
		e.same("after a flush")
		e.reopen()
		e.same("after reopening")
	}
	n, err := e.store.Numbers(e.Context(), 3)
	if err != nil || len(n.Zones) != 2 || n.Zones[0].Zone.String() != "Asia/Tokyo" {
		e.Fatalf("zones: got %v, %v, want Asia/Tokyo and another one", n.Zones, err)
	}
	for i := range calendar.MaxZoneChanges + 2 {
		e.append(p, set(3, []string{"Asia/Tokyo", "Europe/Zurich"}[i%2], day))
	}
	e.crash()
	e.same("after a crash")
	e.flush(p, p.last-3)
	e.same("after a flush of many changes")
	e.flushAll(p)
	for _, way := range e.copies() {
		e.goOnIn(way)
		e.same("in a copy: " + way.Name)
	}
}
