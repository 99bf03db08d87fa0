package sequencer

import (
	"math"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// warm returns a world in which workspaces 1 and 3 of the first kind have an event
// and are cached.
func warm(t failer, s messages.Settings) *world {
	t.Helper()
	w := up(t, s)
	w.event(1, kindWide)
	w.event(3, kindWide)
	return w
}

// done lets everything come and returns the answer, which must be Appended.
func (w *world) done(c *call) *messages.Appended {
	w.t.Helper()
	w.settle()
	return w.mustAppend(c)
}

// TestAppendExplicitID lifts the sequence, in the next draft already.
func TestAppendExplicitID(t *testing.T) {
	const initial = messages.InitialCRecordID
	row := func(n messages.Number) []messages.DraftRecord {
		return []messages.DraftRecord{{ID: messages.RecordID{Seq: messages.SeqCRecordID, Number: n}, New: true}}
	}
	for name, test := range map[string]struct{ id, next messages.Number }{
		"low":              {65536, initial + 1},
		"given already":    {initial, initial + 1},
		"the number given": {initial + 1, initial + 2},
		"far above":        {initial + 1000, initial + 1001},
		"at the cap":       {math.MaxUint64 - 1<<32, math.MaxUint64 - 1<<32 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, messages.Settings{})
			w.done(w.append(w.one(1, kindBare, messages.SeqCRecordID)))
			m := w.one(1, kindBare)
			m.Drafts[0].Records = row(test.id)
			m.Drafts = append(m.Drafts, w.draft(messages.SeqCRecordID))
			if r := w.done(w.append(m)); r.Numbers[0].Number != test.next {
				t.Fatalf("got %v, want %d", r.Numbers, test.next)
			}
			w.crash()
			w.settle()
			if r := w.done(w.append(w.one(1, kindBare, messages.SeqCRecordID))); r.Numbers[0].Number != test.next+1 {
				t.Fatalf("after a crash: got %v, want %d", r.Numbers, test.next+1)
			}
			w.finish()
		})
	}
}

// TestAppendRowNearTheEnd: a row under a number of an earlier draft lifts nothing, so
// that the cap of explicit ids is not for it.
func TestAppendRowNearTheEnd(t *testing.T) {
	const initial = math.MaxUint64 - 1<<32
	w := up(t, messages.Settings{})
	m := w.one(1, kindBare)
	m.Drafts[0].Records = []messages.DraftRecord{{ID: messages.RecordID{Seq: messages.SeqCRecordID, Number: initial}, New: true}}
	w.done(w.append(m))
	m = w.one(1, kindBare, messages.SeqCRecordID)
	m.Drafts = append(m.Drafts, w.draft())
	m.Drafts[1].Records = []messages.DraftRecord{{New: true}}
	w.done(w.append(m))
	if got, want := w.log[2].Records[0].ID, (messages.RecordID{Seq: messages.SeqCRecordID, Number: initial + 1}); got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
	w.finish()
}

// TestAppendWrong: what is wrong whatever the state is refused at once, also while
// the partition can do nothing else.
func TestAppendWrong(t *testing.T) {
	rows := func(rows ...messages.DraftRecord) func(*messages.Append) {
		return func(m *messages.Append) { m.Drafts[0].Records = rows }
	}
	wanted := func(all ...messages.Wanted) func(*messages.Append) {
		return func(m *messages.Append) { m.Drafts[0].Wanted = all }
	}
	id := func(seq messages.SeqID, n messages.Number) messages.RecordID {
		return messages.RecordID{Seq: seq, Number: n}
	}
	for name, test := range map[string]struct {
		spoil func(*messages.Append)
		want  error
	}{
		"another partition":    {func(m *messages.Append) { m.Workspace = 2 }, messages.ErrWrongPartition},
		"unknown kind":         {func(m *messages.Append) { m.Kind = 9 }, messages.ErrUnknownKind},
		"too late":             {func(m *messages.Append) { m.Deadline = 1 }, messages.ErrDeadlineExceeded},
		"no drafts":            {func(m *messages.Append) { m.Drafts = nil }, messages.ErrDraft},
		"too many drafts":      {func(m *messages.Append) { m.Drafts = make([]messages.Draft, 4) }, messages.ErrDraft},
		"unknown sequence":     {wanted(messages.Wanted{Seq: seqOther}), messages.ErrUnknownSequence},
		"WLog offset":          {wanted(messages.Wanted{Seq: messages.SeqWLogOffset}), messages.ErrUnknownSequence},
		"too many numbers":     {wanted(messages.Wanted{Seq: seqPlain, Count: messages.MaxEventNumbers}, messages.Wanted{Seq: seqPlain}), messages.ErrTooManyNumbers},
		"far too many numbers": {wanted(messages.Wanted{Seq: seqPlain, Count: math.MaxUint32}, messages.Wanted{Seq: seqPlain, Count: math.MaxUint32}), messages.ErrTooManyNumbers},
		"too many numbers of a group": {func(m *messages.Append) {
			m.Drafts[0].Wanted = []messages.Wanted{{Seq: seqPlain, Count: messages.MaxEventNumbers}}
			m.Drafts = append(m.Drafts, m.Drafts[0])
		}, messages.ErrTooManyNumbers},
		"number of a record out of range": {rows(messages.DraftRecord{Number: 1}), messages.ErrDraft},
		"negative number of a record":     {rows(messages.DraftRecord{Number: -1}), messages.ErrDraft},
		"number of a later draft": {func(m *messages.Append) {
			m.Drafts = append(m.Drafts, m.Drafts[0])
			m.Drafts[0].Records = []messages.DraftRecord{{Number: 1}}
		}, messages.ErrDraft},
		"row of an unknown sequence":       {rows(messages.DraftRecord{ID: id(seqOther, 1)}), messages.ErrUnknownSequence},
		"row of the WLog":                  {rows(messages.DraftRecord{ID: id(messages.SeqWLogOffset, 1)}), messages.ErrUnknownSequence},
		"row 0":                            {rows(messages.DraftRecord{ID: id(seqPlain, 0)}), messages.ErrDraft},
		"row above the end":                {rows(messages.DraftRecord{ID: id(messages.SeqOWRecordID, messages.InitialCRecordID)}), messages.ErrDraft},
		"new row above the cap":            {rows(messages.DraftRecord{ID: id(seqPlain, math.MaxUint64), New: true}), messages.ErrExplicitID},
		"row created twice":                {rows(messages.DraftRecord{New: true}, messages.DraftRecord{New: true}), messages.ErrDraft},
		"row created after it was written": {rows(messages.DraftRecord{ID: id(seqPlain, 5)}, messages.DraftRecord{ID: id(seqPlain, 5), New: true}), messages.ErrDraft},
		"row created twice among many": {func(m *messages.Append) {
			for n := range messages.Number(30) {
				m.Drafts[0].Records = append(m.Drafts[0].Records, messages.DraftRecord{ID: id(seqPlain, n%20+1), New: true})
			}
		}, messages.ErrDraft},
	} {
		t.Run(name, func(t *testing.T) {
			w := warm(t, messages.Settings{BatchEvents: 3})
			m := w.one(1, kindWide, seqPlain)
			test.spoil(&m)
			w.mustRefuse(w.appendWrong(m, test.want), test.want)
			w.actualize(w.begun(1, kindWide))
			w.mustRefuse(w.appendWrong(m, test.want), test.want)
			if w.core.inFlight != (inFlight{}) {
				t.Fatalf("in flight: %+v", w.core.inFlight)
			}
			w.finish()
		})
	}
}

// TestAppendManyRows: rows that are written again are no contradiction.
func TestAppendManyRows(t *testing.T) {
	w := up(t, messages.Settings{})
	m := w.one(1, kindWide)
	for n := range messages.Number(40) {
		m.Drafts[0].Records = append(m.Drafts[0].Records, messages.DraftRecord{ID: messages.RecordID{Seq: seqPlain, Number: n%20 + 1}, New: n < 20})
	}
	w.done(w.append(m))
	w.finish()
}

// TestAppendLimits: what is just allowed.
func TestAppendLimits(t *testing.T) {
	w := up(t, messages.Settings{BatchEvents: 3})
	m := w.one(1, kindWide)
	m.Drafts[0].Wanted = []messages.Wanted{{Seq: messages.SeqCRecordID, Count: messages.MaxEventNumbers}}
	m.Drafts = append(m.Drafts, w.draft(), w.draft())
	m.Deadline = w.now
	if r := w.done(w.append(m)); len(r.Numbers) != messages.MaxEventNumbers {
		t.Fatalf("got %d numbers", len(r.Numbers))
	}
	w.finish()
}

// TestAppendOverflow: it consumes nothing, wherever in a group it comes. With
// something of the workspace in flight the refusal rests on that.
func TestAppendOverflow(t *testing.T) {
	for drafts := 1; drafts <= 3; drafts++ {
		for _, rests := range []bool{false, true} {
			w := warm(t, messages.Settings{})
			m := w.one(1, kindWide, seqPlain, seqFrom)
			m.Drafts[0].Records = []messages.DraftRecord{{ID: messages.RecordID{Seq: messages.SeqCRecordID, Number: messages.InitialCRecordID + 50}, New: true}}
			for len(m.Drafts) < drafts {
				m.Drafts = append(m.Drafts, w.draft(seqPlain))
			}
			last := &m.Drafts[drafts-1]
			last.Wanted = append(last.Wanted, messages.Wanted{Seq: seqNarrow, Count: 4})
			first := w.one(3, kindWide, seqPlain)
			if rests {
				first.Workspace = 1
			}
			calls := w.batched(first, m, w.one(1, kindWide, seqPlain, seqFrom, seqNarrow, messages.SeqCRecordID))
			if rests {
				w.mustWait(calls...)
			}
			w.write1()
			w.mustAppend(calls[0])
			w.mustRefuse(calls[1], messages.ErrOverflow)
			// The others go on as if it had never been: the world compares with the log.
			if r := w.mustAppend(calls[2]); r.Numbers[2].Number != narrowInitial || r.Numbers[3].Number != messages.InitialCRecordID {
				t.Fatalf("got %+v", r)
			}
			w.finish()
		}
	}
}

// TestAppendWLogOverflow: a group that does not fit into a workspace's log.
func TestAppendWLogOverflow(t *testing.T) {
	w := up(t, messages.Settings{})
	w.seqData[1] = storedOf(kindBare, map[messages.SeqID]messages.Number{messages.SeqWLogOffset: math.MaxUint64 - 1})
	w.truth[1] = w.seqData[1]
	m := w.one(1, kindBare)
	m.Drafts = append(m.Drafts, w.draft())
	group := w.append(m)
	w.settle()
	w.mustRefuse(group, messages.ErrOverflow)
	w.done(w.append(w.one(1, kindBare)))
	full := w.append(w.one(1, kindBare))
	w.settle()
	w.mustRefuse(full, messages.ErrOverflow)
}

// TestBatchEndsAtTheKeys: a batch that has reached the Busy limit exactly takes nobody more.
func TestBatchEndsAtTheKeys(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: never, FlushThreshold: 7, BusyLimit: 7})
	for ws := messages.WSID(1); ws <= 5; ws += 2 {
		w.cancel(w.begun(ws, kindWide))
	}
	// Two keys before it, three of the first and two of the second.
	w.batched(w.one(1, kindWide, seqPlain), w.one(3, kindWide), w.one(5, kindWide))
	w.mustBatch(1, 3)
	w.finish()
}

// TestRowsCountInFlight, with what is in them.
func TestRowsCountInFlight(t *testing.T) {
	w := warm(t, messages.Settings{InFlightBytes: eventBytes + recordBytes + 1000})
	m := messages.Append{Workspace: 1, Kind: kindWide, Drafts: []messages.Draft{{
		Records: []messages.DraftRecord{{ID: messages.RecordID{Seq: seqPlain, Number: 7}, New: true, Data: make([]byte, 1000)}},
	}}}
	c := w.append(m)
	if w.core.TakesRequests() {
		t.Error("takes requests at the limit of bytes")
	}
	w.done(c)
	w.finish()
}

// TestAppendBytes: what a message takes in a lane is what it takes in flight, if it wants one number
// of each sequence.
func TestAppendBytes(t *testing.T) {
	w := warm(t, messages.Settings{})
	m := w.one(1, kindWide, seqPlain, seqFrom)
	m.Drafts[0].Records = []messages.DraftRecord{{New: true, Data: make([]byte, 1000)}}
	m.Drafts = append(m.Drafts, messages.Draft{Body: make([]byte, 100), Wanted: []messages.Wanted{{Seq: seqPlain}}})
	c := w.append(m)
	if got := AppendBytes(&m); got != w.core.inFlight.bytes || got < 1100 {
		t.Errorf("got %d bytes, in flight are %d", got, w.core.inFlight.bytes)
	}
	w.done(c)
	w.finish()
}

// TestCreatedAfterItWasWritten: also among many rows of a message.
func TestCreatedAfterItWasWritten(t *testing.T) {
	w := warm(t, messages.Settings{})
	m := w.one(1, kindWide)
	d := &m.Drafts[0]
	for n := range messages.Number(12) {
		d.Records = append(d.Records, messages.DraftRecord{ID: messages.RecordID{Seq: seqPlain, Number: n + 1}, New: true})
	}
	for _, again := range []int{0, 7, 8, 11} {
		wrong := w.one(1, kindWide)
		wrong.Drafts[0].Records = append(d.Records[:12:12], d.Records[again])
		w.mustRefuse(w.appendWrong(wrong, messages.ErrDraft), messages.ErrDraft)
	}
	w.done(w.append(m))
	w.finish()
}

// TestNumbersAreCountedByAppend: how many numbers an event can have is not a limit on the
// batch.
func TestNumbersAreCountedByAppend(t *testing.T) {
	w := warm(t, messages.Settings{})
	many := func() messages.Append {
		m := w.one(1, kindWide, seqPlain)
		m.Drafts[0].Wanted[0].Count = messages.MaxEventNumbers/2 + 1
		return m
	}
	calls := w.batched(many(), many())
	w.mustBatch(1, 1)
	w.settle()
	if r := w.mustAppend(calls[1]); r.Numbers[0].Number != messages.MaxEventNumbers/2+2 {
		t.Errorf("got %d first, want %d", r.Numbers[0].Number, messages.MaxEventNumbers/2+2)
	}
	w.finish()
}

// TestFollowersOfSeveralSearches: several members of a batch are in the log already, and each
// that follows one of them gets the answer of that one.
func TestFollowersOfSeveralSearches(t *testing.T) {
	w := warm(t, messages.Settings{})
	m, n := w.withID(1, 1, seqPlain), w.withID(2, 1, seqPlain)
	first, second := w.done(w.append(m)), w.done(w.append(n))
	calls := w.batched(m, n, m, n)
	w.settle()
	for i, c := range calls {
		w.mustRepeat(c, []*messages.Appended{first, second}[i%2])
	}
	w.finish()
}

// TestSearchesAreToldApart: an answer to a search that nobody began is nobody's.
func TestSearchesAreToldApart(t *testing.T) {
	w := warm(t, messages.Settings{})
	m := w.withID(1, 1, seqPlain)
	first := w.done(w.append(m))
	old := messages.WLogOffset(9)
	m.Expected = &old
	c := w.append(m)
	w.tell(&messages.EventsLoaded{Generation: w.core.generation, Load: w.core.lastSearch + 1})
	w.mustWait(c)
	w.settle()
	w.mustRepeat(c, first)
	w.finish()
}

// TestFullTailWithNothingToFlush: somebody else fills the store's tail. What is written later
// is flushed at its interval.
func TestFullTailWithNothingToFlush(t *testing.T) {
	w := warm(t, messages.Settings{FlushInterval: 100 * time.Millisecond})
	w.advance(time.Second)
	flushed := len(w.flushes)
	w.writeFault = writeTailFull
	c := w.append(w.one(1, kindWide))
	w.settle()
	w.mustBusy(c, messages.BusyUnflushed)
	w.done(w.append(w.one(1, kindWide)))
	if len(w.flushes) != flushed {
		t.Error("flushed before the interval had passed")
	}
	w.advance(100 * time.Millisecond)
	if len(w.flushes) != flushed+1 {
		t.Errorf("got %d flushes after the interval, want one", len(w.flushes)-flushed)
	}
	w.finish()
}

// TestFlushAfterTheClockWasSetBack: the interval is the time that has passed.
func TestFlushAfterTheClockWasSetBack(t *testing.T) {
	w := up(t, messages.Settings{FlushInterval: 100 * time.Millisecond})
	w.event(1, kindWide)
	w.now -= 3_600_000_000
	w.tell(&messages.Found{})
	w.now += 100_000
	w.tell(&messages.TimerFired{Timer: messages.TimerFlush})
	if jobs := w.leaves[flusherLeaf].jobs; len(jobs) != 1 {
		t.Errorf("got %d flushes under way, want one", len(jobs))
	}
}

// TestReplayEndsOneByOne: what was tried one by one, since nobody knew who was refused, is one
// batch again when the tail was replayed.
func TestReplayEndsOneByOne(t *testing.T) {
	w := warm(t, messages.Settings{})
	bad := w.one(1, kindWide)
	bad.Drafts[0].Body = []byte(poison)
	calls := w.batched(w.one(1, kindWide), w.one(3, kindWide), bad)
	w.write1()
	w.mustBatch(1)
	w.writeFault = writeVanishes
	w.write1()
	w.mustBe(messages.StateInitializing)
	w.settleBut(appenderLeaf)
	w.mustBatch(1, 3, 1)
	w.settle()
	w.mustAppend(calls[0])
	w.mustAppend(calls[1])
	w.mustRefuse(calls[2], errPoison)
	w.finish()
}

// TestCreatedByNumberAndID: a row that a message creates by the index of its number cannot be created
// or written before by its id. Those behind it are not refused with it.
func TestCreatedByNumberAndID(t *testing.T) {
	first := messages.RecordID{Seq: seqPlain, Number: 1}
	for name, rows := range map[string][]messages.DraftRecord{
		"created twice":      {{New: true}, {ID: first, New: true}},
		"written by id":      {{ID: first}, {New: true}},
		"created by id, too": {{ID: first, New: true}, {New: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := warm(t, messages.Settings{FlushInterval: never})
			busy := w.append(w.one(3, kindWide))
			wrong := w.one(1, kindWide, seqPlain)
			wrong.Drafts[0].Records = rows
			refused, behind := w.append(wrong), w.append(w.one(1, kindWide, seqPlain))
			for _, c := range []*call{busy, behind} {
				w.done(c)
			}
			w.mustRefuse(refused, messages.ErrDraft)
			w.finish()
		})
	}
}
