package sequencer

import (
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
)

// batchOf returns the workspaces of the batch under way, in its order.
func (w *world) batchOf() (all []messages.WSID) {
	if w.core.batch.underWay {
		for i := range w.core.batch.events {
			all = append(all, w.core.batch.events[i].Workspace)
		}
	}
	return all
}

func (w *world) mustBatch(want ...messages.WSID) {
	w.t.Helper()
	if got := w.batchOf(); !slices.Equal(got, want) {
		w.t.Fatalf("batch: got %v, want %v", got, want)
	}
}

// TestBatchGathers: what came while a batch was under way is the next one, and is
// answered in order.
func TestBatchGathers(t *testing.T) {
	w := warm(t, messages.Settings{})
	first := w.append(w.one(1, kindWide, seqPlain))
	w.mustBatch(1)
	calls := []*call{first}
	for _, ws := range []messages.WSID{3, 1, 1, 3} {
		calls = append(calls, w.append(w.one(ws, kindWide, seqPlain)))
	}
	w.mustBatch(1)
	w.write1()
	w.mustAppend(first)
	w.mustBatch(3, 1, 1, 3)
	w.mustWait(calls[1:]...)
	w.write1()
	for i, c := range calls {
		if r := w.mustAppend(c); r.PLogOffset != messages.PLogOffset(3+i) {
			t.Fatalf("request %d is at %d", i, r.PLogOffset)
		}
	}
	w.finish()
}

// TestBatchRepliesInOrder, those that follow or rest among them.
func TestBatchRepliesInOrder(t *testing.T) {
	w := warm(t, messages.Settings{})
	m := w.one(1, kindWide)
	m.DedupID[0] = 1
	stale := w.one(1, kindWide)
	stale.Expected = new(messages.WLogOffset)
	calls := w.batched(m, stale, w.one(3, kindWide), m, w.one(1, kindWide))
	w.work(appenderLeaf)
	fx := w.core.Step(nil, w.leaves[appenderLeaf].answers[0], w.now)
	if len(fx.Replies) != len(calls) {
		t.Fatalf("got %d replies, want %d", len(fx.Replies), len(calls))
	}
	for i, r := range fx.Replies {
		if r.To != Requester(calls[i]) {
			t.Fatalf("reply %d is for request %d", i, r.To.(*call).id)
		}
	}
}

// TestBatchLimits: of events and of bytes, but at least one Append.
func TestBatchLimits(t *testing.T) {
	t.Run("events", func(t *testing.T) {
		w := warm(t, messages.Settings{BatchEvents: 3})
		group := w.one(1, kindWide)
		group.Drafts = append(group.Drafts, w.draft())
		w.batched(group, group2(w), w.one(3, kindWide), w.one(3, kindWide))
		w.mustBatch(1, 1)
		w.write1()
		w.mustBatch(1, 1, 3)
		w.write1()
		w.mustBatch(3)
		w.finish()
	})
	t.Run("bytes", func(t *testing.T) {
		w := warm(t, messages.Settings{InFlightBytes: 2 * (eventBytes + 1000)})
		sized := func(ws messages.WSID, n int) messages.Append {
			m := w.one(ws, kindWide)
			m.Drafts[0].Body = append(m.Drafts[0].Body, make([]byte, n-len(m.Drafts[0].Body))...)
			return m
		}
		w.batched(sized(1, 1000), sized(3, 1000), sized(1, 5000), sized(3, 100))
		w.mustBatch(1, 3)
		w.write1()
		w.mustBatch(1)
		w.write1()
		w.mustBatch(3)
		w.finish()
	})
	t.Run("one byte too many", func(t *testing.T) {
		w := warm(t, messages.Settings{InFlightBytes: 2*(eventBytes+1000) - 1})
		m, n := w.one(1, kindWide), w.one(3, kindWide)
		m.Drafts[0].Body, n.Drafts[0].Body = make([]byte, 1000), append(make([]byte, 999), 1)
		w.batched(m, n)
		w.mustBatch(1)
		w.finish()
	})
}

func group2(w *world) messages.Append {
	m := w.one(1, kindWide)
	m.Drafts = append(m.Drafts, w.draft())
	return m
}

// TestBatchBusy: the limits on what is unflushed can be passed by one Append only,
// and an Append that is beyond them is Busy.
func TestBatchBusy(t *testing.T) {
	t.Run("events", func(t *testing.T) {
		w := up(t, messages.Settings{FlushInterval: never, BusyEvents: 8})
		w.event(1, kindWide)
		w.event(3, kindWide)
		// Four events start a flush, which is not written yet.
		calls := w.batched(w.one(1, kindWide), w.one(1, kindWide), group2(w), w.one(3, kindWide), w.one(3, kindWide), w.one(3, kindWide))
		w.mustBatch(1, 1, 1, 1, 3)
		w.write1()
		w.mustAppend(calls[3])
		w.mustBusy(calls[4], messages.BusyUnflushed)
		w.mustBusy(calls[5], messages.BusyUnflushed)
		w.settle()
		w.done(w.append(w.one(1, kindWide)))
		w.finish()
	})
	t.Run("keys", func(t *testing.T) {
		w := up(t, messages.Settings{FlushInterval: never, FlushThreshold: 8, BusyLimit: 8})
		for ws := messages.WSID(1); ws <= 7; ws += 2 {
			w.cancel(w.begun(ws, kindWide))
		}
		// The first one has three keys, of which the next one changes two again; two
		// workspaces more pass the limit.
		calls := w.batched(w.one(1, kindWide, seqPlain), w.one(1, kindWide, seqPlain), w.one(3, kindWide), w.one(5, kindWide), w.one(7, kindWide))
		w.mustBatch(1, 1, 3, 5)
		w.write1()
		w.mustAppend(calls[3])
		w.mustBusy(calls[4], messages.BusyUnflushed)
		w.finish()
	})
}

// TestStartBehindAppends waits until all of them are durable, and holds the lane.
func TestStartBehindAppends(t *testing.T) {
	w := warm(t, messages.Settings{})
	a := w.append(w.one(1, kindWide, seqPlain))
	b := w.append(w.one(1, kindWide, seqPlain))
	if !w.core.TakesRequests() {
		t.Fatal("takes no request while only Appends wait")
	}
	o := w.request(messages.Start{Workspace: 1, Kind: kindWide})
	behind := w.append(w.one(3, kindWide))
	if w.core.TakesRequests() {
		t.Fatal("takes requests while a Start waits")
	}
	w.write1()
	w.mustAppend(a)
	w.mustBatch(1)
	w.write1()
	w.mustAppend(b)
	if !o.granted || w.given(w.next(o, seqPlain)) != 3 {
		t.Fatalf("granted %v", o.granted)
	}
	w.mustWait(behind)
	w.commit(o)
	w.mustBatch(3)
	w.done(behind)
	w.finish()
}

// TestAppendBehindStart waits for the end of the transaction.
func TestAppendBehindStart(t *testing.T) {
	for name, end := range map[string]func(w *world, o *owner){
		"flushed":    func(w *world, o *owner) { w.commit(o) },
		"cancelled":  func(w *world, o *owner) { w.cancel(o) },
		"actualized": func(w *world, o *owner) { w.write(o); w.actualize(o) },
	} {
		t.Run(name, func(t *testing.T) {
			w := warm(t, messages.Settings{})
			o := w.begun(1, kindWide)
			c := w.append(w.one(1, kindWide, seqPlain))
			if !w.core.NeedsTime() {
				t.Fatal("the next batch has no time")
			}
			w.given(w.next(o, seqPlain))
			w.settle()
			w.mustWait(c)
			end(w, o)
			w.done(c)
			w.finish()
		})
	}
}

// TestHotWorkspaceDoesNotOvertake: what is cached waits behind what came before.
func TestHotWorkspaceDoesNotOvertake(t *testing.T) {
	w := warm(t, messages.Settings{BatchEvents: 1})
	blocked := w.append(w.one(1, kindWide))
	other := w.append(w.one(3, kindWide))
	for range 3 {
		w.append(w.one(1, kindWide))
	}
	w.write1()
	w.mustAppend(blocked)
	w.mustBatch(3)
	w.write1()
	w.mustAppend(other)
	w.finish()
}

// TestAppendWaitsForItsLoad: that workspace's requests in order, others pass.
func TestAppendWaitsForItsLoad(t *testing.T) {
	w := warm(t, messages.Settings{})
	cold := w.append(w.one(5, kindWide, seqPlain))
	o := w.request(messages.Start{Workspace: 5, Kind: kindWide})
	colder := w.append(w.one(5, kindWide, seqPlain))
	hot := w.append(w.one(1, kindWide))
	w.write1()
	w.mustAppend(hot)
	w.mustWait(cold, colder)
	w.work(readerLeaf)
	w.deliver(readerLeaf)
	w.mustBatch(5)
	w.write1()
	w.mustAppend(cold)
	w.commit(o)
	if r := w.done(colder); r.WLogOffset != 3 {
		t.Fatalf("got %+v", r)
	}
	w.finish()
}

func TestAppendLoadFails(t *testing.T) {
	w := warm(t, messages.Settings{})
	w.failLoads = 1
	c := w.append(w.one(5, kindWide))
	w.settle()
	w.mustRefuse(c, errDown)
	w.finish()
}

// TestRequestsAreHeldInFlight: what is queued and what is under way count, until it
// is answered.
func TestRequestsAreHeldInFlight(t *testing.T) {
	hold := func(t *testing.T, s messages.Settings, size int, want int) {
		w := warm(t, s)
		n := 0
		for ; w.core.TakesRequests() && n < 100; n++ {
			m := w.one(1, kindWide)
			m.Drafts[0].Body = append(m.Drafts[0].Body, make([]byte, size-len(m.Drafts[0].Body))...)
			w.append(m)
		}
		if n != want {
			t.Fatalf("got %d Appends, want %d", n, want)
		}
		w.write1()
		if !w.core.TakesRequests() {
			t.Fatal("takes none after a batch")
		}
		w.finish()
	}
	t.Run("events", func(t *testing.T) { hold(t, messages.Settings{InFlightEvents: 5}, 100, 5) })
	t.Run("bytes", func(t *testing.T) { hold(t, messages.Settings{InFlightBytes: 4*(eventBytes+1000) + 1}, 1000, 5) })
	t.Run("one is more than all", func(t *testing.T) { hold(t, messages.Settings{InFlightBytes: 100}, 1000, 1) })
	t.Run("loading", func(t *testing.T) {
		w := warm(t, messages.Settings{InFlightEvents: 3})
		for range 3 {
			w.append(w.one(5, kindWide))
		}
		if w.core.TakesRequests() {
			t.Fatal("what waits for a load does not count")
		}
		w.finish()
	})
	t.Run("actualizing", func(t *testing.T) {
		w := warm(t, messages.Settings{InFlightEvents: 3})
		w.actualize(w.begun(1, kindWide))
		for range 3 {
			if !w.core.TakesRequests() {
				t.Fatal("takes none")
			}
			w.append(w.one(1, kindWide))
		}
		if w.core.TakesRequests() {
			t.Fatal("what waits for the replay does not count")
		}
		w.finish()
	})
	t.Run("many rows and numbers", func(t *testing.T) {
		w := warm(t, messages.Settings{InFlightBytes: eventBytes + 10*recordBytes + 10*numberBytes})
		m := messages.Append{Workspace: 1, Kind: kindWide, Drafts: []messages.Draft{{Wanted: []messages.Wanted{{Seq: seqPlain, Count: 10}}}}}
		for n := range 10 {
			m.Drafts[0].Records = append(m.Drafts[0].Records, messages.DraftRecord{Number: n, New: true})
		}
		w.append(m)
		if w.core.TakesRequests() {
			t.Fatal("they do not count")
		}
		w.settle()
	})
}

// TestEvictedInBatch: with a cache of one, each workspace pushes the others out. A
// workspace in the queue or in the batch keeps its numbers, and there is one copy.
func TestEvictedInBatch(t *testing.T) {
	w := newWorld(t, messages.Settings{FlushInterval: never})
	w.config.CacheNumbers = 1
	w.begin()
	w.settle()
	var calls []*call
	for round := range 4 {
		for ws := messages.WSID(1); ws <= 9; ws += 2 {
			calls = append(calls, w.append(w.one(ws, kindWide, seqPlain)))
		}
		w.settleBut(appenderLeaf)
		if round == 0 && len(w.core.evicted) == 0 {
			t.Fatal("nothing was evicted")
		}
	}
	loads := w.core.lastLoad
	w.settle()
	for _, c := range calls {
		w.mustAppend(c)
	}
	if w.core.lastLoad != loads || len(w.core.evicted) != 0 {
		t.Fatalf("loaded again: %v; kept: %v", w.core.lastLoad != loads, w.core.evicted)
	}
	w.finish()
}

// TestUnflushedOnlyWhenDurable: a flush that begins while a batch is under way knows
// nothing of it.
func TestUnflushedOnlyWhenDurable(t *testing.T) {
	w := up(t, messages.Settings{FlushThreshold: 1, FlushInterval: never})
	w.event(1, kindWide, seqPlain)
	w.settle()
	w.append(w.one(1, kindWide, seqPlain))
	if keys := w.core.unflushedKeys(); keys != 0 {
		t.Fatalf("got %d keys", keys)
	}
	w.append(w.one(1, kindWide, seqPlain))
	w.write1()
	// The first is being flushed, the second is being written.
	if w.core.flight.pending == nil || w.core.flight.request.Checkpoint != 3 {
		t.Fatalf("got %+v", w.core.flight)
	}
	w.finish()
}

// TestReserveIsGivenBack: the numbers of an attempt that was refused.
func TestReserveIsGivenBack(t *testing.T) {
	w := warm(t, messages.Settings{})
	w.writeFault = writeNoSpace
	m := w.one(1, kindWide, seqPlain)
	m.Drafts[0].Records = []messages.DraftRecord{{ID: messages.RecordID{Seq: seqFrom, Number: 500}, New: true}}
	w.mustRefuse(w.settled(w.append(m)), errNoSpace)
	if got := w.event(1, kindWide, seqPlain, seqFrom); got[0] != 1 || got[1] != 100 {
		t.Fatalf("got %v", got)
	}
	w.finish()
}

func (w *world) settled(c *call) *call {
	w.settle()
	return c
}

// TestBigBatchIsForgotten: the memory of a batch that was much larger than those
// that came later is not kept.
func TestBigBatchIsForgotten(t *testing.T) {
	w := warm(t, messages.Settings{})
	ms := make([]messages.Append, 500)
	for i := range ms {
		ms[i] = w.one(1, kindWide)
	}
	w.batched(ms...)
	w.write1()
	if cap(w.core.batch.events) < 500 {
		t.Fatal("memory is not used again")
	}
	w.done(w.append(w.one(1, kindWide)))
	if n := cap(w.core.batch.events); n != 0 {
		t.Fatalf("memory for %d events is kept", n)
	}
	w.finish()
}

// TestStrangeAnswers about a batch change nothing.
func TestStrangeAnswers(t *testing.T) {
	w := warm(t, messages.Settings{})
	c := w.append(w.one(1, kindWide))
	g := w.core.generation
	w.tell(&messages.EventsWritten{Generation: g - 1, First: 3})
	w.tell(&messages.EventsWritten{Generation: g, First: 2})
	w.tell(&messages.EventsLoaded{Generation: g, Load: 1})
	w.mustWait(c)
	w.done(c)
	w.tell(&messages.EventsWritten{Generation: g, First: 3})
	w.tell(&messages.EventsWritten{Generation: g, First: 4})
	w.finish()
}
