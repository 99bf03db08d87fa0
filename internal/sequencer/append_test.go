package sequencer

import (
	"math"
	"slices"
	"testing"

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

func TestAppendOne(t *testing.T) {
	w := up(t, messages.Settings{})
	m := w.one(1, kindWide, seqPlain, seqFrom, messages.SeqCRecordID)
	m.Drafts[0].Wanted[1].Count = 2
	m.Drafts[0].Records = []messages.DraftRecord{{Number: 3, New: true, Data: []byte("row")}, {ID: messages.RecordID{Seq: seqFrom, Number: 7}}}
	for i := range messages.Number(2) {
		m.Drafts[0].Body = []byte{byte(i)}
		r := w.done(w.append(m))
		want := []messages.SequenceNumber{{Seq: seqPlain, Number: 1 + i}, {Seq: seqFrom, Number: 100 + 2*i}, {Seq: seqFrom, Number: 101 + 2*i},
			{Seq: messages.SeqCRecordID, Number: messages.InitialCRecordID + i}}
		if !slices.Equal(r.Numbers, want) || r.PLogOffset != messages.PLogOffset(i+1) || r.WLogOffset != messages.WLogOffset(i+1) || r.RegisteredAt != w.now {
			t.Fatalf("got %+v, want %v", r, want)
		}
	}
	if rows := w.log[1].Records; rows[0].ID.Number != messages.InitialCRecordID+1 || !rows[0].New || rows[1].New || string(rows[0].Data) != "row" {
		t.Fatalf("got %+v", rows)
	}
	w.finish()
}

// TestAppendGroup: a later draft refers to a record that an earlier one creates.
func TestAppendGroup(t *testing.T) {
	w := up(t, messages.Settings{})
	m := w.one(1, kindWide, seqPlain, messages.SeqCRecordID)
	m.DedupID[0] = 1
	second := w.draft(seqPlain)
	second.Records = []messages.DraftRecord{{Number: 1}, {Number: 2, New: true}}
	m.Drafts = append(m.Drafts, second, messages.Draft{Body: []byte("none")})
	m.Drafts[0].Records = []messages.DraftRecord{{Number: 1, New: true}}
	r := w.done(w.append(m))
	if len(w.log) != 3 || w.log[0].Together != 2 || w.log[0].DedupID != m.DedupID || w.log[2].WLogOffset != 3 {
		t.Fatalf("got %+v", w.log)
	}
	rows := w.log[1].Records
	if rows[0].ID != w.log[0].Records[0].ID || rows[1].ID != (messages.RecordID{Seq: seqPlain, Number: 2}) || len(r.Numbers) != 3 {
		t.Fatalf("got %+v, %+v", rows, r)
	}
	w.finish()
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
	w.seqData[1] = lasts{kindBare, map[messages.SeqID]messages.Number{messages.SeqWLogOffset: math.MaxUint64 - 1}}
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

// TestAppendKindMismatch: the first event fixes the kind, be it in the same batch.
func TestAppendKindMismatch(t *testing.T) {
	w := warm(t, messages.Settings{})
	w.mustRefuse(w.append(w.one(1, kindOther)), messages.ErrKindMismatch)
	w.cancel(w.begun(5, kindBare))
	calls := w.batched(w.one(5, kindOther, seqPlain), w.one(5, kindWide, seqPlain), w.one(5, kindOther, seqPlain))
	w.mustWait(calls...)
	w.write1()
	w.mustAppend(calls[0])
	w.mustRefuse(calls[1], messages.ErrKindMismatch)
	if r := w.mustAppend(calls[2]); r.Numbers[0].Number != 11 {
		t.Fatalf("got %+v", r)
	}
	w.finish()
}

// TestAppendKindChosenAnew: the batch fails, so that the kind is free again.
func TestAppendKindChosenAnew(t *testing.T) {
	w := warm(t, messages.Settings{})
	w.cancel(w.begun(5, kindBare))
	bad := w.one(5, kindOther)
	bad.Drafts[0].Body = []byte(poison)
	calls := w.batched(bad, w.one(5, kindWide, seqPlain))
	w.write1()
	w.mustRefuse(calls[0], errPoison)
	w.done(calls[1])
	w.finish()
}

// TestAppendDeadlinePassesWhileWaiting: the deadline itself is in time; what was
// handed over is not looked at again.
func TestAppendDeadlinePassesWhileWaiting(t *testing.T) {
	w := warm(t, messages.Settings{})
	first := w.one(1, kindWide)
	first.Deadline = w.now
	handed := w.append(first)
	late, inTime := w.one(1, kindWide), w.one(3, kindWide)
	late.Deadline, inTime.Deadline = w.now+999, w.now+1000
	a, b := w.append(late), w.append(inTime)
	w.now += 1000
	w.write1()
	w.mustAppend(handed)
	w.mustRefuse(a, messages.ErrDeadlineExceeded)
	w.done(b)
	w.finish()
}

// TestAppendTimeNeverFalls: not when the clock is set back.
func TestAppendTimeNeverFalls(t *testing.T) {
	w := warm(t, messages.Settings{})
	w.now += 500
	at := w.done(w.append(w.one(1, kindWide))).RegisteredAt
	w.now -= 400
	if r := w.done(w.append(w.one(1, kindWide))); r.RegisteredAt != at {
		t.Fatalf("got %v after %v", r.RegisteredAt, at)
	}
	w.finish()
}
