package sequencer

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// tillAt returns a world at a time, with the receipts of days in a zone.
func tillAt(t *testing.T, zone, now string) *world {
	t.Helper()
	w := newWorld(t, messages.Settings{FlushInterval: never})
	w.config.Descriptor.Kinds[3].Sequences[0].Restart.Zone = zone
	w.now = moment(t, now)
	w.begin()
	w.settle()
	return w
}

// dated asks for an event of the till with a business date.
func (w *world) dated(date calendar.Date, seqs ...messages.SeqID) messages.Append {
	m := w.one(1, kindTill, seqs...)
	m.Drafts[0].Date = date
	return m
}

// wants checks the numbers that an Append is answered with, as "21/2026-03-29/1".
func (w *world) wants(c *call, numbers ...string) {
	w.t.Helper()
	w.settle()
	for i, n := range w.mustAppend(c).Numbers {
		if got := n.String(); i >= len(numbers) || got != numbers[i] {
			w.t.Fatalf("number %d: got %v, want %v", i, got, numbers)
		}
	}
}

// TestMidnightRace: two that come in the same instant, the first ones of the day, get 1 and 2, in one batch and in two.
func TestMidnightRace(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T21:59:59.999999Z")
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-06-30/1")
	w.now++
	calls := w.batched(w.one(1, kindTill, seqReceipt), w.one(1, kindTill, seqReceipt))
	third := w.append(w.one(1, kindTill, seqReceipt))
	w.wants(calls[0], "21/2026-07-01/1")
	w.wants(calls[1], "21/2026-07-01/2")
	w.wants(third, "21/2026-07-01/3")
	w.finish()
}

// TestMidnightPassesWhileWaiting: it is the period at the turn that counts, not the one at which somebody asked.
func TestMidnightPassesWhileWaiting(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T21:59:59Z")
	first := w.batched(w.one(1, kindTill, seqReceipt))[0]
	second := w.append(w.one(1, kindTill, seqReceipt))
	w.now = moment(t, "2026-06-30T22:00:00Z")
	w.wants(first, "21/2026-06-30/1")
	w.wants(second, "21/2026-07-01/1")
	w.finish()
}

// TestClockBackOverMidnight: a day that is over does not begin again, also not in the next incarnation.
func TestClockBackOverMidnight(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T21:59:59Z")
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-06-30/1")
	w.now += 2_000_000
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-07-01/1")
	w.now, w.setBack = w.now-2_000_000, true
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-07-01/2")
	w.crash()
	w.settle()
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-07-01/3")
	o := w.begun(1, kindTill)
	if g, ok := w.next(o, seqReceipt).reply.(*messages.Given); !ok || g.Period != 20260701 || g.Number != 4 {
		t.Fatalf("got %+v, want 4 of 2026-07-01", g)
	}
	w.commit(o)
	w.finish()
}

// TestDaysOfOtherLengths: one restart for each local date, of 23 and 25 hours, without a midnight and with two.
func TestDaysOfOtherLengths(t *testing.T) {
	for _, night := range []struct {
		zone, from string
		hours      map[calendar.Date]int
	}{
		{"Europe/Zurich", "2026-03-27T23:00:00Z", map[calendar.Date]int{20260328: 24, 20260329: 23, 20260330: 24}},
		{"Europe/Zurich", "2026-10-23T22:00:00Z", map[calendar.Date]int{20261024: 24, 20261025: 25, 20261026: 24}},
		{"Africa/Cairo", "2026-04-22T22:00:00Z", map[calendar.Date]int{20260423: 24, 20260424: 23, 20260425: 24}},
		{"Africa/Cairo", "2026-10-28T21:00:00Z", map[calendar.Date]int{20261029: 25, 20261030: 24, 20261031: 24}},
		{"America/Havana", "2026-10-31T04:00:00Z", map[calendar.Date]int{20261031: 24, 20261101: 25, 20261102: 24}},
	} {
		t.Run(fmt.Sprintf("%s %.10s", night.zone, night.from), func(t *testing.T) {
			w := tillAt(t, night.zone, night.from)
			end := w.now + messages.Timestamp(72*time.Hour/time.Microsecond)
			for _, hours := range night.hours {
				end += messages.Timestamp(time.Duration(hours-24) * time.Hour / time.Microsecond)
			}
			got := make(map[calendar.Date]int)
			// An event at each half hour, the first ones a moment before and after midnight as it is usually.
			for ; w.now < end; w.now += messages.Timestamp(30 * time.Minute / time.Microsecond) {
				n := w.done(w.append(w.one(1, kindTill, seqReceipt))).Numbers[0]
				got[n.Period]++
				if int(n.Number) != got[n.Period] {
					t.Fatalf("at %v: got %v, want number %d", w.now, n, got[n.Period])
				}
			}
			for date, hours := range night.hours {
				if got[date] != 2*hours {
					t.Errorf("%v: got %d events, want %d", date, got[date], 2*hours)
				}
			}
			w.finish()
		})
	}
}

// TestOtherDateIsAnotherAppend: with the same id and another business date, also of the same period, it is not the same.
func TestOtherDateIsAnotherAppend(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	m := w.dated(20260629, seqBill)
	m.DedupID[0] = 7
	w.wants(w.append(m), "22/2026-06-01/100")
	for _, date := range []calendar.Date{20260628, 0} {
		other := m
		other.Drafts = []messages.Draft{m.Drafts[0]}
		other.Drafts[0].Date = date
		c := w.append(other)
		w.settle()
		w.mustRefuse(c, messages.ErrDedupMismatch)
	}
	if again := w.done(w.append(m)); !again.Repeated {
		t.Fatalf("got %+v, want it repeated", again)
	}
	w.finish()
}

// TestNumbersThatRestartAreNoIDs: of no record, by their index or as they are, new or not.
func TestNumbersThatRestartAreNoIDs(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	byIndex := w.one(1, kindTill, messages.SeqCRecordID, seqReceipt)
	byIndex.Drafts[0].Records = []messages.DraftRecord{{Number: 0, New: true}, {Number: 1, New: true}}
	c := w.append(byIndex)
	w.settle()
	w.mustRefuse(c, messages.ErrDraft)
	for _, isNew := range []bool{false, true} {
		m := w.one(1, kindTill)
		m.Drafts[0].Records = []messages.DraftRecord{{ID: messages.RecordID{Seq: seqReceipt, Number: 1}, New: isNew}}
		w.mustRefuse(w.appendWrong(m, messages.ErrUnknownSequence), messages.ErrUnknownSequence)
	}
	o := w.begun(1, kindTill)
	w.mustRefuse(w.raise(o, seqReceipt, 5), messages.ErrUnknownSequence)
	if err := w.core.txn.Covers([]messages.Record{{ID: messages.RecordID{Seq: seqReceipt, Number: 1}}}); !errors.Is(err, messages.ErrUnknownSequence) {
		t.Fatalf("got %v, want ErrUnknownSequence", err)
	}
	w.cancel(o)
	byIndex = w.one(1, kindTill, messages.SeqCRecordID, seqReceipt)
	byIndex.Drafts[0].Records = []messages.DraftRecord{{Number: 0, New: true}}
	w.wants(w.append(byIndex), "2/322685000131072", "21/2026-06-30/1")
	w.finish()
}

// TestOverflowEndsWithThePeriod: the next one has all numbers again.
func TestOverflowEndsWithThePeriod(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-28T23:59:59Z") // a Sunday
	w.wants(w.append(w.one(1, kindTill, seqRound, seqRound, seqRound)), "23/2026-06-22/2", "23/2026-06-22/3", "23/2026-06-22/4")
	full := w.append(w.one(1, kindTill, seqRound))
	w.settle()
	w.mustRefuse(full, messages.ErrOverflow)
	w.now += 1_000_000
	w.wants(w.append(w.one(1, kindTill, seqRound)), "23/2026-06-29/2")
	w.finish()
}

// TestRefusedDraftTurnsBack: of a group that is refused at its last draft nothing is left, in any of the periods.
func TestRefusedDraftTurnsBack(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	w.wants(w.append(w.dated(20260629, seqReceipt)), "21/2026-06-29/1")
	group := w.dated(20260629, seqReceipt, seqBill)
	for _, date := range []calendar.Date{20260701, 20260629, 20260630} {
		d := w.draft(seqReceipt, seqBill)
		d.Date = date
		group.Drafts = append(group.Drafts, d)
	}
	bad := group
	bad.Drafts = nil
	for _, d := range group.Drafts {
		d.Body = append([]byte("bad "), d.Body...)
		bad.Drafts = append(bad.Drafts, d)
	}
	// By its drafts before, two newer days have numbers.
	closed := w.draft(seqReceipt)
	closed.Date = 20260629
	bad.Drafts = append(bad.Drafts, closed)
	calls := w.batched(w.dated(20260701, seqReceipt), bad, group)
	w.settle()
	w.mustRefuse(calls[1], messages.ErrBusinessDate)
	w.wants(calls[0], "21/2026-07-01/1")
	w.wants(calls[2], "21/2026-06-29/2", "22/2026-06-01/100", "21/2026-07-01/2", "22/2026-07-01/100",
		"21/2026-06-29/3", "22/2026-06-01/101", "21/2026-06-30/1", "22/2026-06-01/102")
	w.finish()
}

// TestRefusedDraftLeavesOtherPeriods: what a group has counted in periods that were counted in before in the same batch
// is not seen by those behind it.
func TestRefusedDraftLeavesOtherPeriods(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	group := func(dates ...calendar.Date) messages.Append {
		m := w.dated(dates[0], seqReceipt)
		for _, date := range dates[1:] {
			m.Drafts = append(m.Drafts, w.draft(seqReceipt))
			m.Drafts[len(m.Drafts)-1].Date = date
		}
		return m
	}
	calls := w.batched(group(20260701, 20260630, 20260701), group(20260630, 20260701, 20300101), group(20260630, 20260701))
	w.wants(calls[0], "21/2026-07-01/1", "21/2026-06-30/1", "21/2026-07-01/2")
	w.mustRefuse(calls[1], messages.ErrBusinessDate)
	w.wants(calls[2], "21/2026-06-30/2", "21/2026-07-01/3")
	w.finish()
}

// TestDateOfATransaction: all numbers of a transaction are of the periods of its business date, whoever counts them.
func TestDateOfATransaction(t *testing.T) {
	for _, counts := range []bool{false, true} {
		w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
		w.wants(w.append(w.dated(20260531, seqBill)), "22/2026-05-01/100")
		w.wants(w.append(w.one(1, kindTill, seqBill)), "22/2026-06-01/100")
		o := w.request(messages.Start{Workspace: 1, Kind: kindTill, Date: 20260630, WithNumbers: counts})
		w.given(w.next(o, seqBill))
		w.given(w.next(o, seqReceipt))
		w.commit(o)
		// The next one is of a kind without periods: nothing of the one before is left.
		bare := w.request(messages.Start{Workspace: 3, Kind: kindBare, WithNumbers: true})
		w.settle()
		w.given(w.next(bare, messages.SeqCRecordID))
		w.commit(bare)
		early := w.request(messages.Start{Workspace: 1, Kind: kindTill, Date: 20260702, WithNumbers: counts})
		w.settle()
		w.mustRefuse(early.start, messages.ErrBusinessDate)
		none := w.request(messages.Start{Workspace: 1, Kind: kindTill, Date: 20260631})
		w.mustRefuse(none.start, messages.ErrDraft)
		w.finish()
	}
}

// TestBatchEndsAtTheKeysOfPeriods: each period in which a batch gives the first number is a key, and is counted once.
func TestBatchEndsAtTheKeysOfPeriods(t *testing.T) {
	for limit, together := range map[int][]messages.WSID{7: {1, 1, 1}, 8: {1, 1, 1, 1, 3}, 9: {1, 1, 1, 1, 3}, 10: {1, 1, 1, 1, 3, 5}} {
		w := newWorld(t, messages.Settings{FlushInterval: never, FlushThreshold: 7, BusyLimit: limit})
		w.now = moment(t, "2026-06-30T12:00:00Z")
		w.begin()
		w.settle()
		for ws := messages.WSID(1); ws <= 5; ws += 2 {
			w.cancel(w.begun(ws, kindTill))
		}
		// Two keys before it, five of the first, none of the second, and two of each other one.
		group := w.dated(20260531, seqBill)
		for _, date := range []calendar.Date{20260701, 20260601} {
			d := w.draft(seqBill)
			d.Date = date
			group.Drafts = append(group.Drafts, d)
		}
		w.batched(group, w.dated(20260702, seqBill), w.one(3, kindTill), w.one(5, kindTill))
		w.mustBatch(together...)
		w.finish()
	}
}

// TestBackfillIsBounded: a cached workspace does not grow with the days that it is numbered for, and finds all again.
func TestBackfillIsBounded(t *testing.T) {
	const months = 300
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	first := calendar.Date(20010101)
	for i := range months {
		w.done(w.append(w.dated(naiveAdd(calendar.Month, first, i), seqBill)))
	}
	ws, _ := w.core.cache.Peek(1)
	if got := len(ws.others); got > 2*newestPeriods {
		t.Errorf("got %d periods in the cache, want at most %d", got, 2*newestPeriods)
	}
	for _, i := range []int{0, 170, months - 1} {
		m := naiveAdd(calendar.Month, first, i)
		w.wants(w.append(w.dated(m, seqBill)), fmt.Sprintf("22/%v/101", m))
	}
	w.finish()
}

// TestAwaitedPeriodsStay: what somebody waits for is not forgotten, however much is learnt meanwhile.
func TestAwaitedPeriodsStay(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	oldest := calendar.Date(20200101)
	for i := range 30 {
		w.done(w.append(w.dated(naiveAdd(calendar.Month, oldest, i), seqBill)))
	}
	// One batch is under way. In the queue behind it are the oldest month and many others.
	first := w.batched(w.one(blocker, kindBare))[0]
	var waiting []*call
	for i := range 3 * newestPeriods {
		waiting = append(waiting, w.append(w.dated(naiveAdd(calendar.Month, oldest, i), seqBill)))
		w.settleBut(appenderLeaf)
	}
	w.settle()
	w.mustAppend(first)
	for i, c := range waiting {
		w.wants(c, fmt.Sprintf("22/%v/101", naiveAdd(calendar.Month, oldest, i)))
	}
	w.finish()
}

// TestCurrentBehindManyAhead: if the newest periods lie ahead, the current one is loaded before it is counted in, also
// the one that begins while a request waits.
func TestCurrentBehindManyAhead(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	for _, date := range []calendar.Date{20260531, 20260630, 20260731, 20260831, 20260930} {
		w.done(w.append(w.dated(date, seqBill)))
	}
	w.advance(2 * never)
	w.crash()
	w.settle()
	c := w.append(w.one(1, kindTill, seqBill))
	w.wants(c, "22/2026-06-01/101")
	w.crash()
	w.settle()
	first := w.batched(w.one(blocker, kindBare))[0]
	c = w.append(w.one(1, kindTill, seqBill))
	w.settleBut(appenderLeaf)
	w.now = moment(t, "2026-07-01T00:00:00Z")
	w.settle()
	w.mustAppend(first)
	w.wants(c, "22/2026-07-01/101")
	w.finish()
}

// TestClosedStaysClosedInAnotherZone: by another zone database, which another zone stands for here, a day that was
// closed has not passed. It is not counted in again.
func TestClosedStaysClosedInAnotherZone(t *testing.T) {
	w := newWorld(t, messages.Settings{FlushInterval: never})
	restart := &w.config.Descriptor.Kinds[3].Sequences[0].Restart
	restart.Keep, restart.Ahead, restart.Zone = 1, -1, "Pacific/Kiritimati"
	w.now = moment(t, "2026-06-29T23:00:00Z")
	w.begin()
	w.settle()
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-06-30/1")
	w.now = moment(t, "2026-06-30T11:00:00Z")
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-07-01/1")
	restart.Zone = "Pacific/Pago_Pago"
	w.crash()
	w.settle()
	w.wants(w.append(w.one(1, kindTill, seqReceipt)), "21/2026-07-01/2")
	w.finish()
}

// TestClosedIsLoaded: a new incarnation knows what was closed, and not only what is left.
func TestClosedIsLoaded(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-06-28T12:00:00Z")
	for range 3 {
		w.done(w.append(w.one(1, kindTill, seqReceipt)))
		w.advance(24 * time.Hour)
	}
	w.crash()
	w.settle()
	late := w.append(w.dated(20260628, seqReceipt))
	w.settle()
	w.mustRefuse(late, messages.ErrBusinessDate)
	w.wants(w.append(w.dated(20260629, seqReceipt)), "21/2026-06-29/2")
	w.finish()
}

// TestLessIsKept: what is kept longer in the store than it is to be now is closed when it is loaded.
func TestLessIsKept(t *testing.T) {
	w := newWorld(t, messages.Settings{FlushInterval: never})
	restart := &w.config.Descriptor.Kinds[3].Sequences[0].Restart
	restart.Keep = 4
	w.now = moment(t, "2026-06-27T12:00:00Z")
	w.begin()
	w.settle()
	for range 4 {
		w.done(w.append(w.one(1, kindTill, seqReceipt)))
		w.advance(24 * time.Hour)
	}
	w.wants(w.append(w.dated(20260627, seqReceipt)), "21/2026-06-27/2")
	w.advance(2 * never)
	restart.Keep = 2
	w.truth[1].close(w.kinds()[kindTill])
	w.crash()
	w.settle()
	late := w.append(w.dated(20260627, seqReceipt))
	w.settle()
	w.mustRefuse(late, messages.ErrBusinessDate)
	w.wants(w.append(w.dated(20260629, seqReceipt)), "21/2026-06-29/2")
	w.finish()
}

// TestStalePeriodIsNotBelieved: the numbers are loaded while a flush closes a day in the store.
func TestStalePeriodIsNotBelieved(t *testing.T) {
	w := newWorld(t, messages.Settings{FlushInterval: never})
	w.config.CacheNumbers = 1
	w.now = moment(t, "2026-06-28T12:00:00Z")
	w.begin()
	w.settle()
	for range 2 {
		w.done(w.append(w.one(1, kindTill, seqReceipt)))
		w.advance(24 * time.Hour)
	}
	w.done(w.append(w.one(1, kindTill, seqReceipt)))
	w.evict()
	late := w.append(w.dated(20260628, seqReceipt))
	today := w.append(w.one(1, kindTill, seqReceipt))
	w.work(readerLeaf)
	w.now += messages.Timestamp(never / time.Microsecond)
	for w.fire() {
		w.settleBut(readerLeaf)
	}
	if w.checkpoint != 4 || w.seqData[1].closed[seqReceipt] != 20260629 {
		t.Fatalf("not flushed meanwhile: checkpoint %d, %v", w.checkpoint, w.seqData[1])
	}
	w.settle()
	w.mustRefuse(late, messages.ErrBusinessDate)
	w.wants(today, "21/2026-06-30/2")
	w.finish()
}

// TestClosedSinceItWasLoaded: the store has closed periods that were older ones when the workspace was loaded. That a
// period has no number any more does not mean that it never had one: its numbers would be given twice.
func TestClosedSinceItWasLoaded(t *testing.T) {
	w := newWorld(t, messages.Settings{FlushInterval: never})
	w.now = moment(t, "2026-06-30T12:00:00Z")
	w.begin()
	w.settle()
	c := w.core
	c.lastTime = w.now
	first := calendar.Date(20250101)
	months := func(from int) []messages.SequenceNumber {
		n := []messages.SequenceNumber{{Seq: messages.SeqWLogOffset, Number: 12}}
		for i := from; i < 12; i++ {
			n = append(n, messages.SequenceNumber{Seq: seqBill, Period: naiveAdd(calendar.Month, first, i), Number: 105})
		}
		return n
	}
	m := w.dated(first, seqBill)
	waits := waiting{append: &m, kind: c.kinds[kindTill]}
	load := func(n messages.WorkspaceNumbers, asked []messages.SequencePeriod) {
		n.Workspace, n.Kind = 1, kindTill
		if _, err := c.takeLoaded(&messages.Loaded{Numbers: n}, &load{queue: []waiting{waits}, periods: asked}); err != nil {
			t.Fatal(err)
		}
	}
	load(messages.WorkspaceNumbers{Older: []messages.SeqID{seqBill}, Numbers: months(4)}, nil)
	waits.ws, _ = c.cache.Peek(1)
	asked := c.unknownPeriods(&waits)
	if len(asked) == 0 {
		t.Fatal("the first month counts as known")
	}
	closed := messages.SequencePeriod{Seq: seqBill, Period: naiveAdd(calendar.Month, first, 3)}
	load(messages.WorkspaceNumbers{Closed: []messages.SequencePeriod{closed}, Numbers: months(3)}, asked)
	r := &Reservation{workspace: 1, kind: waits.kind}
	r.copyFrom(&waits.ws.lasts)
	if err := c.turnSequence(r, waits.ws, waits.kind.index(seqBill), first); !errors.Is(err, messages.ErrBusinessDate) {
		n, _ := r.Next(messages.Wanted{Seq: seqBill})
		t.Errorf("got %v, %v, want that the month is closed", n, err)
	}
}
