package sequencer

import (
	"runtime"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// allocated returns how many bytes a function allocates: the work of copying lists, which does not depend on the machine.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// backfilled is the tail of a log with an event for each day of n, in two pendings: every other day is in each of them.
func backfilled(t *testing.T, n int) *world {
	t.Helper()
	w := newWorld(t, messages.Settings{FlushInterval: never, FlushThreshold: 1_000_000})
	w.config.Descriptor.Kinds[3].Sequences[0].Restart.Keep = 0
	w.now = moment(t, "2026-06-30T12:00:00Z")
	w.begin()
	w.settle()
	c := w.core
	c.lastTime = w.now
	for part := range 2 {
		d := c.unflushed.of(1, c.kinds[kindTill])
		c.unflushed.raise(d, wlogOffset, 0, messages.Number(n/2*(part+1)))
		for i := part; i < n; i += 2 {
			c.unflushed.raise(d, c.kinds[kindTill].index(seqReceipt), dayOf(i), messages.Number(i+1))
		}
		if part == 0 {
			c.unflushed.markFirst(d)
			c.flight.pending, c.unflushed = c.unflushed, newPending(c.unflushed.serial+1)
		}
	}
	return w
}

func dayOf(i int) calendar.Date { return naiveAdd(calendar.Day, 19700101, i) }

// TestPendingPeriodsAreMergedOnce: what a workspace takes to build grows with its pending periods, not with their square,
// and the cache has no more of them than there is room for.
func TestPendingPeriodsAreMergedOnce(t *testing.T) {
	const days = 10_000
	w := backfilled(t, days)
	kind := w.core.kinds[kindTill]
	var ws *workspace
	if got := allocated(func() { ws = w.core.lookup(1, kind) }); got > 4<<20 {
		t.Errorf("a workspace of %d pending periods: got %d bytes allocated, want at most 4 MiB", days, got)
	}
	receipt := kind.index(seqReceipt)
	if got := len(ws.others); got > 2*newestPeriods {
		t.Errorf("got %d periods in the cache, want at most %d", got, 2*newestPeriods)
	}
	for _, i := range []int{days - 1, days - 2, days - 3} {
		if n, known := ws.in(kind, receipt, dayOf(i)); !known || n != messages.Number(i+1) {
			t.Errorf("day %d: got %d (known %v), want %d", i, n, known, i+1)
		}
	}
	if ws.spans[receipt].known == 0 || ws.last[wlogOffset] != days {
		t.Errorf("got %+v, offset %d", ws.spans[receipt], ws.last[wlogOffset])
	}
}

// TestAppendOfManyPeriods: an Append with drafts of many dates copies what is reserved once, not for each.
func TestAppendOfManyPeriods(t *testing.T) {
	const days = 1024
	w := tillAt(t, "Europe/Zurich", "2026-06-30T12:00:00Z")
	m := w.dated(dayOf(0), seqBill)
	for i := 1; i < days; i++ {
		d := w.draft(seqBill)
		d.Date = naiveAdd(calendar.Month, 18000101, i)
		m.Drafts = append(m.Drafts, d)
	}
	c := w.core
	w.done(w.append(w.one(1, kindTill)))
	ws, _ := c.cache.Peek(1)
	r := c.batch.reserve(ws)
	defer c.batch.unreserve()
	if got := allocated(func() {
		for i := range m.Drafts {
			if err := c.turnTo(&r.Reservation, ws, &m.Drafts[i]); err != nil {
				t.Fatal(err)
			}
		}
	}); got > 256<<10 {
		t.Errorf("%d periods: got %d bytes allocated, want at most 256 KiB", days, got)
	}
}

// TestManyMovesOfOneDraft: what an event costs that moves many periods grows with them, not with their square, also if
// it closes the older ones.
func TestManyMovesOfOneDraft(t *testing.T) {
	const days = 5_000
	for _, keep := range []int{0, 3} {
		w := newWorld(t, messages.Settings{FlushInterval: never})
		w.config.Descriptor.Kinds[3].Sequences[0].Restart.Keep = keep
		w.now = moment(t, "2026-06-30T12:00:00Z")
		w.begin()
		w.settle()
		c := w.core
		c.lastTime = w.now
		r := c.batch.reserve(newWorkspace(1, c.kinds[kindTill]))
		c.batch.before.copyFrom(&r.lasts)
		draft := messages.Draft{Moves: make([]messages.SequenceNumber, days)}
		for i := range days {
			draft.Moves[i] = messages.SequenceNumber{Seq: seqReceipt, Period: dayOf(i), Number: 5}
		}
		var moved []messages.SequenceNumber
		var err error
		if got := allocated(func() { moved, err = c.move(r, &draft) }); got > 4<<20 || err != nil || len(moved) != days {
			t.Errorf("keep %d: got %d of %d moves, %d bytes allocated, %v, want at most 4 MiB", keep, len(moved), days, got, err)
		}
	}
}
