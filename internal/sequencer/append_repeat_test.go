package sequencer

import (
	"errors"
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

// TestRepeatedIsLarge: likewise of the limit in bytes. Whoever is too large without having been
// written is told so, and what he is told counts his bytes.
func TestRepeatedIsLarge(t *testing.T) {
	w := warm(t, messages.Settings{})
	m := w.group(1)
	first := w.done(w.append(m))
	got := AppendBytes(&m)
	w.reconfigure(messages.Settings{GroupBytes: got})
	exact := w.group(3)
	exact.Drafts[0].Records[1].ID.Number++ // another row, since that one is there
	w.done(w.append(exact))
	w.reconfigure(messages.Settings{GroupBytes: got - 1})
	w.mustRepeat(w.settled(w.append(m)), first)
	for _, id := range []byte{0, 2} {
		other := w.group(id)
		other.DedupID[0] = id
		other.Drafts[0].Body, other.Drafts[1].Body = []byte("Body 1"), []byte("Body 2")
		c := w.settled(w.append(other))
		e, ok := errors.AsType[*messages.TooLargeError](refusalOf(c))
		if !ok || *e != (messages.TooLargeError{Workspace: 1, Got: got, Want: got - 1}) {
			t.Errorf("id %d: got %v, want that %d bytes are too large", id, refusalOf(c), got)
		}
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
		same.Drafts[0].Records[0] = messages.DraftRecord{ID: first.Numbers[1].Record(), New: true, Data: []byte("a")}
		same.Drafts[2].Body = []byte{}
		w.mustRepeat(w.settled(w.append(same)), first)
		w.finish()
	})
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
