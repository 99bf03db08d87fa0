package sequencer

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
)

func plainID(n messages.Number) messages.RecordID {
	return messages.RecordID{Seq: seqPlain, Number: n}
}

// updating is an Append of one event that updates records.
func (w *world) updating(ws messages.WSID, ids ...messages.RecordID) messages.Append {
	m := w.one(ws, kindWide)
	for _, id := range ids {
		m.Drafts[0].Records = append(m.Drafts[0].Records, messages.DraftRecord{ID: id, Data: []byte("update")})
	}
	return m
}

// mustBeAhead checks what a refusal says of the record.
func (w *world) mustBeAhead(c *call, id messages.RecordID, last messages.Number) {
	w.t.Helper()
	got, ok := errors.AsType[*messages.RecordAheadError](refusalOf(c))
	want := messages.RecordAheadError{Workspace: c.message.(*messages.Append).Workspace, ID: id, Last: last}
	if !ok || *got != want || !errors.Is(got, messages.ErrRecordAhead) {
		w.t.Fatalf("got %T (%v), want %v", c.reply, refusalOf(c), &want)
	}
}

// TestUpdateAhead: a record is updated under a number that was given out, before or to
// this very event, or that is no number of its sequence. What is refused uses no number,
// and the workspace goes on.
func TestUpdateAhead(t *testing.T) {
	update := func(ids ...messages.RecordID) func(*world) messages.Append {
		return func(w *world) messages.Append { return w.updating(1, ids...) }
	}
	// An event wants a plain number or none, and writes records.
	type event struct {
		wants   bool
		records []messages.DraftRecord
	}
	drafts := func(events ...event) func(*world) messages.Append {
		return func(w *world) messages.Append {
			m := messages.Append{Workspace: 1, Kind: kindWide}
			for _, e := range events {
				d := w.draft()
				if e.wants {
					d = w.draft(seqPlain)
				}
				d.Records = e.records
				m.Drafts = append(m.Drafts, d)
			}
			return m
		}
	}
	put := func(n messages.Number) messages.DraftRecord { return messages.DraftRecord{ID: plainID(n)} }
	insert := func(n messages.Number) messages.DraftRecord { return messages.DraftRecord{ID: plainID(n), New: true} }
	rows := func(r ...messages.DraftRecord) []messages.DraftRecord { return r }
	// Plain numbers up to 3 and numbers from 100 to 101 were given out.
	for name, tt := range map[string]struct {
		append func(*world) messages.Append
		// ahead is the record that is, with the last number of its sequence.
		ahead messages.RecordID
		last  messages.Number
	}{
		"last number":                {append: update(plainID(3))},
		"next number":                {update(plainID(4)), plainID(4), 3},
		"far ahead":                  {update(plainID(2), plainID(1<<40)), plainID(1 << 40), 3},
		"the largest number":         {update(plainID(maxOf(seqPlain))), plainID(maxOf(seqPlain)), 3},
		"below the initial value":    {append: update(messages.RecordID{Seq: seqFrom, Number: 99})},
		"from the initial value on":  {update(messages.RecordID{Seq: seqFrom, Number: 102}), messages.RecordID{Seq: seqFrom, Number: 102}, 101},
		"sequence without a number":  {update(messages.RecordID{Seq: messages.SeqCRecordID, Number: messages.InitialCRecordID}), messages.RecordID{Seq: messages.SeqCRecordID, Number: messages.InitialCRecordID}, 0},
		"... below its initial one":  {append: update(messages.RecordID{Seq: messages.SeqCRecordID, Number: messages.InitialCRecordID - 1})},
		"number of its own event":    {append: drafts(event{true, rows(messages.DraftRecord{Number: 0})})},
		"... named":                  {append: drafts(event{true, rows(put(4))})},
		"... and the next":           {drafts(event{true, rows(put(5))}), plainID(5), 4},
		"number of an earlier event": {append: drafts(event{true, nil}, event{false, rows(put(4), messages.DraftRecord{Number: 0, Data: []byte("again")})})},
		"number of a later event":    {drafts(event{false, rows(put(4))}, event{wants: true}), plainID(4), 3},
		"record of its own event":    {append: drafts(event{false, rows(insert(9), put(9))})},
		"below a new record":         {append: drafts(event{false, rows(put(7), insert(9))})},
		"above a new record":         {drafts(event{false, rows(insert(9), put(10))}), plainID(10), 9},
		"record of an earlier event": {append: drafts(event{false, rows(insert(9))}, event{true, rows(put(9), put(10))})},
		"record of a later event":    {drafts(event{false, rows(put(7))}, event{false, rows(insert(9))}), plainID(7), 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := warm(t, messages.Settings{})
			w.event(1, kindWide, seqPlain, seqPlain, seqPlain, seqFrom, seqFrom)
			before, m := len(w.log), tt.append(w)
			c := w.settled(w.append(m))
			next := w.one(1, kindWide, seqPlain, seqFrom)
			if tt.ahead == (messages.RecordID{}) {
				w.mustAppend(c)
			} else {
				w.mustBeAhead(c, tt.ahead, tt.last)
				at := messages.WLogOffset(w.truth[1].last(messages.SeqWLogOffset))
				next.Expected = &at
				if r := w.done(w.append(next)); len(w.log) != before+1 || r.Numbers[0].Number != 4 || r.Numbers[1].Number != 102 {
					t.Errorf("got %+v of a log of %d events", r, len(w.log))
				}
			}
			// Nobody who creates a record meets one that is there.
			w.done(w.append(rowOf(w.one(1, kindWide, seqPlain), true)))
			w.finish()
		})
	}
}

// TestUpdateOfNoSequence: what is no sequence of the kind has no records.
func TestUpdateOfNoSequence(t *testing.T) {
	kinds := NewKinds(testDescriptor())
	r, err := kinds.Reserve(1, kindWide, &messages.Started{Last: make([]messages.Number, len(kinds.byID[kindWide].sequences))})
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range []messages.SeqID{0, messages.SeqWLogOffset, seqOther} {
		err := r.Covers([]messages.Record{{ID: messages.RecordID{Seq: seq, Number: 1}}})
		if !errors.Is(err, messages.ErrUnknownSequence) {
			t.Errorf("sequence %d: got %v, want %v", seq, err, messages.ErrUnknownSequence)
		}
	}
}

// TestUpdateAheadRests: what was given out to an event in flight counts, as long as that
// is not refused.
func TestUpdateAheadRests(t *testing.T) {
	t.Run("written", func(t *testing.T) {
		w := warm(t, messages.Settings{})
		calls := w.batched(w.one(1, kindWide, seqPlain), w.updating(1, plainID(1)), w.updating(1, plainID(2)), w.updating(3, plainID(1)))
		w.mustWait(calls[:3]...)
		w.mustBeAhead(calls[3], plainID(1), 0) // it rests on nobody
		w.write1()
		w.mustAppend(calls[1])
		w.mustBeAhead(calls[2], plainID(2), 1)
		w.finish()
	})
	t.Run("refused", func(t *testing.T) {
		w := warm(t, messages.Settings{})
		bad := w.one(1, kindWide, seqPlain)
		bad.Drafts[0].Body = []byte(poison)
		calls := w.batched(bad, w.updating(1, plainID(1)), w.updating(1, plainID(2)))
		w.settle()
		w.mustRefuse(calls[0], errPoison)
		w.mustBeAhead(calls[1], plainID(1), 0)
		w.mustBeAhead(calls[2], plainID(2), 0)
		w.finish()
	})
}

// TestUpdateAheadLoaded: numbers that are loaded or replayed count as others do.
func TestUpdateAheadLoaded(t *testing.T) {
	w := warm(t, messages.Settings{})
	w.event(1, kindWide, seqPlain, seqPlain)
	w.quiesce()
	for _, forget := range []func(){w.evict, w.crash} {
		forget()
		w.settle()
		w.done(w.append(w.updating(1, plainID(2))))
		w.mustBeAhead(w.settled(w.append(w.updating(1, plainID(3)))), plainID(3), 2)
	}
	w.finish()
}

// TestUpdateAheadByKind: kinds may share a sequence and begin it elsewhere; the workspace's
// counts. What was refused has not made the workspace one of its kind.
func TestUpdateAheadByKind(t *testing.T) {
	w := warm(t, messages.Settings{})
	m := w.updating(7, plainID(10))
	m.Kind = kindOther // it begins with 10, kindWide with 1
	w.mustBeAhead(w.settled(w.append(m)), plainID(10), 0)
	w.mustBeAhead(w.settled(w.append(w.updating(7, plainID(9)))), plainID(9), 0)
	m = w.updating(7, plainID(9))
	m.Kind = kindOther
	w.done(w.append(m))
	w.finish()
}

// TestUpdateAheadOfOldLog: a log that has a record ahead of its sequence is replayed as it
// is. The append that wrote it is recognised; others are refused until a new record
// lifts the sequence.
func TestUpdateAheadOfOldLog(t *testing.T) {
	w := warm(t, messages.Settings{FlushInterval: never})
	m := w.updating(1, plainID(5))
	m.DedupID[0] = 1
	w.epoch++
	if !w.appendEvent(messages.Event{
		Kind: messages.EventBusiness, Epoch: w.epoch, Partition: testPartition, PLogOffset: messages.PLogOffset(len(w.log) + 1),
		Workspace: 1, WorkspaceKind: kindWide, WLogOffset: messages.WLogOffset(w.truth[1].last(messages.SeqWLogOffset) + 1),
		RegisteredAt: w.now, DedupID: m.DedupID, Body: m.Drafts[0].Body,
		Records: []messages.Record{{ID: plainID(5), Data: []byte("update")}},
	}) {
		t.Fatal("not written")
	}
	w.bodies[bodyOf(&m)]++
	w.crash()
	w.settle()
	if r := w.done(w.append(m)); !r.Repeated {
		t.Errorf("got %+v, want it repeated", r)
	}
	w.mustBeAhead(w.settled(w.append(w.updating(1, plainID(5)))), plainID(5), 0)
	lift := w.one(1, kindWide)
	lift.Drafts[0].Records = []messages.DraftRecord{{ID: plainID(6), New: true}}
	w.done(w.append(lift))
	w.done(w.append(w.updating(1, plainID(5))))
	w.finish()
}

// TestRefusedRecordsAreLetGo: what a refused Append brought along is not kept until another one is written, which may never be.
func TestRefusedRecordsAreLetGo(t *testing.T) {
	w := warm(t, messages.Settings{})
	w.event(1, kindWide, seqPlain)
	for range 1000 {
		w.mustBeAhead(w.settled(w.append(w.updating(1, plainID(1), plainID(9)))), plainID(9), 1)
	}
	all := w.core.batch.records
	if all = all[:cap(all)]; len(all) > 256 {
		t.Errorf("got room for %d records, want as many as one Append has", len(all))
	}
	for _, r := range all {
		if r.Data != nil {
			t.Fatalf("got %q of record %v, want nothing", r.Data, r.ID)
		}
	}
	w.finish()
}
