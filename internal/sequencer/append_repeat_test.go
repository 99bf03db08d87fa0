package sequencer

import (
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
)

// withID is an Append with a deduplication id.
func (w *world) withID(id byte, ws messages.WSID, seqs ...messages.SeqID) messages.Append {
	m := w.one(ws, kindWide, seqs...)
	m.DedupID[0] = id
	return m
}

// group is an Append with an id, two events, numbers and rows of all sorts.
func (w *world) group(id byte) messages.Append {
	m := w.withID(id, 1, seqPlain, messages.SeqCRecordID)
	m.Drafts[0].Records = []messages.DraftRecord{{Number: 1, New: true, Data: []byte("a")}, {ID: messages.RecordID{Seq: seqFrom, Number: 200}, New: true}}
	second := w.draft(seqPlain)
	second.Wanted[0].Count = 3
	second.Records = []messages.DraftRecord{{Number: 1, Data: []byte("b")}, {Number: 3, New: true}}
	m.Drafts = append(m.Drafts, second, messages.Draft{})
	return m
}

// mustRepeat checks that an Append is answered as the first one was.
func (w *world) mustRepeat(c *call, first *messages.Appended) {
	w.t.Helper()
	r := w.mustAppend(c)
	if !r.Repeated || first.Repeated || r.PLogOffset != first.PLogOffset || r.WLogOffset != first.WLogOffset ||
		r.RegisteredAt != first.RegisteredAt || r.Partition != first.Partition || !slices.Equal(r.Numbers, first.Numbers) {
		w.t.Fatalf("got %+v, want %+v repeated", r, first)
	}
}

// TestRepeated: the answer is that of the append which wrote the id, and nothing is
// written.
func TestRepeated(t *testing.T) {
	w := warm(t, messages.Settings{})
	m := w.group(1)
	first := w.done(w.append(m))
	w.event(1, kindWide, seqPlain)
	w.now += 1000
	for range 2 {
		w.mustRepeat(w.settled(w.append(m)), first)
		w.crash()
		w.settle()
	}
	// The same id of another workspace is another one.
	if w.done(w.append(w.withID(1, 3))).Repeated || len(w.log) != 7 {
		t.Fatalf("got %d events", len(w.log))
	}
	w.finish()
}

// TestRepeatedIsRecognisedFirst: the retry of an append whose offset is stale, or
// whose sequence is exhausted, since it has succeeded.
func TestRepeatedIsRecognisedFirst(t *testing.T) {
	w := warm(t, messages.Settings{})
	one := messages.WLogOffset(1)
	m := w.withID(1, 1)
	m.Expected = &one
	m.Drafts[0].Wanted = []messages.Wanted{{Seq: seqNarrow, Count: 3}}
	first := w.done(w.append(m))
	w.mustRepeat(w.settled(w.append(m)), first)
	other := m
	other.DedupID[0] = 2
	other.Drafts = []messages.Draft{w.draft()}
	w.mustRefuse(w.settled(w.append(other)), messages.ErrExpectedOffset)
	m.Expected = nil
	w.mustRepeat(w.settled(w.append(m)), first)
	other.Expected, other.Drafts = nil, []messages.Draft{w.draft(seqNarrow)}
	w.mustRefuse(w.settled(w.append(other)), messages.ErrOverflow)
	// While something of the workspace is in flight, too.
	m.Expected = &one
	calls := w.batched(w.one(1, kindWide), m)
	w.settle()
	w.mustRepeat(calls[1], first)
	w.finish()
}

// TestRepeatedIsLong: a limit that was lowered says nothing about what is in the log.
func TestRepeatedIsLong(t *testing.T) {
	w := warm(t, messages.Settings{})
	m := w.group(1)
	first := w.done(w.append(m))
	before := len(w.log)
	w.reconfigure(messages.Settings{BatchEvents: 2})
	w.mustRepeat(w.settled(w.append(m)), first)
	other := w.group(2)
	other.Drafts[0].Body, other.Drafts[1].Records[0].Data = make([]byte, 1<<20), make([]byte, 1<<20)
	searched := w.append(other)
	if got := w.core.inFlight; got.events != 3 || got.bytes < 2<<20+3*eventBytes+recordBytes {
		t.Errorf("got %+v in flight, want three events with all that is in them", got)
	}
	w.mustRefuse(w.settled(searched), messages.ErrDraft)
	for _, number := range []int{-1, len(first.Numbers), 1000} {
		wrong := w.group(1)
		wrong.Drafts[0].Body, wrong.Drafts[0].Records[0].Number = m.Drafts[0].Body, number
		w.mustRefuse(w.settled(w.append(wrong)), messages.ErrDedupMismatch)
	}
	// Behind others of its batch, with nothing of it in the log; and in one batch with
	// one that has its id.
	short := w.withID(3, 1)
	calls := w.batched(w.one(1, kindWide), other, short, w.group(3), m)
	w.settle()
	w.mustAppend(calls[0])
	w.mustRefuse(calls[1], messages.ErrDraft)
	w.mustAppend(calls[2])
	w.mustRefuse(calls[3], messages.ErrDedupMismatch)
	w.mustRepeat(calls[4], first)
	if got := len(w.log) - before; got != 3 {
		t.Fatalf("got %d events, want calls 0 and 2, and what they waited for", got)
	}
	w.finish()
}

// TestOtherDrafts: the same id with other drafts is refused, whatever differs.
func TestOtherDrafts(t *testing.T) {
	id := messages.RecordID{Seq: seqFrom, Number: 201}
	changes := map[string]func(m *messages.Append){
		"body":          func(m *messages.Append) { m.Drafts[1].Body = []byte("other") },
		"fewer drafts":  func(m *messages.Append) { m.Drafts = m.Drafts[:2] },
		"more drafts":   func(m *messages.Append) { m.Drafts = append(m.Drafts, messages.Draft{}) },
		"sequence":      func(m *messages.Append) { m.Drafts[0].Wanted[0].Seq = seqFrom },
		"fewer numbers": func(m *messages.Append) { m.Drafts[1].Wanted[0].Count = 2 },
		"more numbers": func(m *messages.Append) {
			m.Drafts[2].Wanted = []messages.Wanted{{Seq: seqPlain}}
		},
		"number of a row": func(m *messages.Append) { m.Drafts[1].Records[0].Number = 0 },
		"id of a row":     func(m *messages.Append) { m.Drafts[0].Records[1].ID = id },
		"explicit row":    func(m *messages.Append) { m.Drafts[1].Records[0] = messages.DraftRecord{ID: id, Data: []byte("b")} },
		"new":             func(m *messages.Append) { m.Drafts[0].Records[0].New = false },
		"data":            func(m *messages.Append) { m.Drafts[0].Records[0].Data = nil },
		"fewer rows":      func(m *messages.Append) { m.Drafts[1].Records = m.Drafts[1].Records[:1] },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			w := warm(t, messages.Settings{})
			m, other := w.group(1), w.group(1)
			other.Drafts[0].Body, other.Drafts[1].Body = m.Drafts[0].Body, m.Drafts[1].Body
			change(&other)
			first := w.append(m)
			follows := w.append(other)
			w.done(first)
			w.settle()
			w.mustRefuse(follows, messages.ErrDedupMismatch)
			w.mustRefuse(w.settled(w.append(other)), messages.ErrDedupMismatch)
			if len(w.log) != 5 {
				t.Fatalf("got %d events", len(w.log))
			}
			w.finish()
		})
	}
	t.Run("kind", func(t *testing.T) {
		w := up(t, messages.Settings{})
		m := messages.Append{Workspace: 1, Kind: kindBare, DedupID: messages.DedupID{1}, Drafts: []messages.Draft{{}}}
		w.done(w.append(m))
		m.Kind = kindWide
		w.mustRefuse(w.settled(w.append(m)), messages.ErrDedupMismatch)
	})
	// What means the same is the same.
	t.Run("none", func(t *testing.T) {
		w := warm(t, messages.Settings{})
		m := w.group(1)
		first := w.done(w.append(m))
		same := w.group(1)
		same.Drafts[0].Body, same.Drafts[1].Body = m.Drafts[0].Body, m.Drafts[1].Body
		same.Drafts[1].Wanted = []messages.Wanted{{Seq: seqPlain}, {Seq: seqPlain, Count: 1}, {Seq: seqPlain}}
		same.Drafts[0].Records[0] = messages.DraftRecord{ID: messages.RecordID(first.Numbers[1]), New: true, Data: []byte("a")}
		same.Drafts[2].Body = []byte{}
		w.mustRepeat(w.settled(w.append(same)), first)
		w.finish()
	})
}

// TestFollowers: the same id twice in a batch is written once, and the second one
// is answered behind the first.
func TestFollowers(t *testing.T) {
	t.Run("durable", func(t *testing.T) {
		w := warm(t, messages.Settings{})
		m := w.group(1)
		other := m
		other.Drafts = m.Drafts[:1]
		calls := w.batched(m, m, w.one(3, kindWide), other, m)
		w.mustBatch(1, 1, 1, 3)
		w.mustWait(calls...)
		w.write1()
		first := w.mustAppend(calls[0])
		w.mustRepeat(calls[1], first)
		w.mustRefuse(calls[3], messages.ErrDedupMismatch)
		w.mustRepeat(calls[4], first)
		w.finish()
	})
	t.Run("refused", func(t *testing.T) {
		w := warm(t, messages.Settings{})
		bad := w.withID(1, 1, seqPlain)
		bad.Drafts[0].Body = []byte(poison)
		good := w.withID(1, 1, seqPlain)
		calls := w.batched(bad, good, good)
		w.write1()
		w.mustRefuse(calls[0], errPoison)
		w.mustWait(calls[1:]...)
		w.write1()
		w.mustRepeat(calls[2], w.mustAppend(calls[1]))
		w.finish()
	})
	t.Run("in the log", func(t *testing.T) {
		w := warm(t, messages.Settings{})
		m := w.group(1)
		first := w.done(w.append(m))
		other := m
		other.Drafts = m.Drafts[:1]
		calls := w.batched(m, other, m, w.one(3, kindWide))
		w.write1()
		w.mustBatch(3)
		if jobs := w.leaves[readerLeaf].jobs; len(jobs) != 1 {
			t.Fatalf("got %d searches for one id", len(jobs))
		}
		w.settle()
		w.mustRepeat(calls[0], first)
		w.mustRefuse(calls[1], messages.ErrDedupMismatch)
		w.mustRepeat(calls[2], first)
		w.finish()
	})
	t.Run("late", func(t *testing.T) {
		w := warm(t, messages.Settings{})
		m := w.withID(1, 1)
		late := m
		late.Deadline = w.now
		first := w.append(m)
		c := w.append(late)
		w.now++
		w.write1()
		w.mustAppend(first)
		w.mustRefuse(c, messages.ErrDeadlineExceeded)
		w.finish()
	})
}

// TestDuplicatesAreDropped: the store names all of a batch; the others are numbered
// anew at once, while the log is searched.
func TestDuplicatesAreDropped(t *testing.T) {
	w := warm(t, messages.Settings{})
	a, b := w.withID(1, 1, seqPlain), w.withID(2, 3, seqPlain)
	firstA, firstB := w.done(w.append(a)), w.done(w.append(b))
	calls := w.batched(w.one(1, kindWide, seqPlain), a, w.withID(3, 1, seqPlain), b, w.one(3, kindWide, seqPlain))
	w.write1()
	w.mustBatch(1, 1, 3)
	if n := len(w.leaves[readerLeaf].jobs); n != 2 || w.core.inFlight.events != 5 {
		t.Fatalf("got %d searches, %+v in flight", n, w.core.inFlight)
	}
	w.write1()
	for i, want := range map[int]messages.Number{0: 2, 2: 3, 4: 2} {
		if r := w.mustAppend(calls[i]); r.Numbers[0].Number != want {
			t.Fatalf("got %+v, want number %d", r, want)
		}
	}
	w.settle()
	w.mustRepeat(calls[1], firstA)
	w.mustRepeat(calls[3], firstB)
	w.finish()
}

// TestSearchesAreBounded: what is searched for is in flight until it is answered.
func TestSearchesAreBounded(t *testing.T) {
	w := warm(t, messages.Settings{InFlightEvents: 2})
	m := w.withID(1, 1)
	w.done(w.append(m))
	for range 2 {
		w.append(m)
		w.settleBut(readerLeaf)
	}
	if len(w.core.searches) != 2 || w.core.TakesRequests() {
		t.Fatalf("got %d searches, and takes requests", len(w.core.searches))
	}
	w.finish()
}

// TestSearchFails: it may have been written.
func TestSearchFails(t *testing.T) {
	w := warm(t, messages.Settings{})
	m := w.withID(1, 1)
	first := w.done(w.append(m))
	w.failSearches = 1
	c := w.settled(w.append(m))
	w.mustRefuse(c, messages.ErrOutcomeUnknown)
	w.mustRefuse(c, errDown)
	w.mustRepeat(w.settled(w.append(m)), first)
	w.finish()
}

// TestSearchFindsSomethingElse: the store contradicts itself.
func TestSearchFindsSomethingElse(t *testing.T) {
	w := warm(t, messages.Settings{})
	m := w.withID(1, 1)
	w.done(w.append(m))
	for i, events := range [][]messages.Event{nil, w.log[:1]} {
		c := w.appendWrong(m, errTwice)
		w.write1()
		w.leaves[readerLeaf].jobs = nil
		w.tell(&messages.EventsLoaded{Generation: w.core.generation, Load: w.core.lastSearch, Events: events})
		if w.mustRefuse(c, errTwice); len(w.core.searches) != 0 {
			t.Fatalf("case %d: still searches", i)
		}
	}
	w.finish()
}

// TestSearchDuringActualization: what the log says stays true.
func TestSearchDuringActualization(t *testing.T) {
	w := warm(t, messages.Settings{})
	m := w.withID(1, 1)
	first := w.done(w.append(m))
	o := w.request(messages.Start{Workspace: 3, Kind: kindWide})
	w.cancel(o)
	c := w.append(m)
	w.write1()
	w.actualize(w.begun2(3))
	w.mustWait(c)
	w.work(readerLeaf)
	w.deliver(readerLeaf)
	w.mustBe(messages.StateInitializing)
	w.mustRepeat(c, first)
	w.finish()
}

// begun2 starts a transaction without letting the leaves work.
func (w *world) begun2(ws messages.WSID) *owner {
	w.t.Helper()
	o := w.request(messages.Start{Workspace: ws, Kind: kindWide})
	if !o.granted {
		w.t.Fatalf("not granted: %v", refusalOf(o.start))
	}
	return o
}
