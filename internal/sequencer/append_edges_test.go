package sequencer

import (
	"errors"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

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

// TestDivergedIsUnwritten: that the log did not take a batch is known, so that it is written again
// also if another owner has flushed behind its place meanwhile.
func TestDivergedIsUnwritten(t *testing.T) {
	w := warm(t, messages.Settings{FlushInterval: never})
	c := w.append(w.one(1, kindWide, seqPlain))
	w.writeFault = writeDiverges
	w.write1()
	w.epoch++
	if !w.appendEvent(messages.Event{
		Kind: messages.EventBusiness, Epoch: w.epoch, Partition: testPartition, PLogOffset: 3, Workspace: 3, WorkspaceKind: kindWide,
		WLogOffset: 2, RegisteredAt: w.now,
	}) {
		t.Fatal("not written")
	}
	w.seqData, w.checkpoint = lastsOf(w.log, w.kinds()), messages.PLogOffset(len(w.log)+1)
	if r := w.done(c); r.PLogOffset != 4 {
		t.Errorf("got %+v, want it at offset 4", r)
	}
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

// TestFencedWhileStopping: a stop whose last batch is refused because somebody else owns the
// partition is not a clean one, even if nothing was left to flush.
func TestFencedWhileStopping(t *testing.T) {
	w := warm(t, messages.Settings{})
	w.advance(time.Second)
	c := w.append(w.one(1, kindWide))
	w.usurp()
	s := w.stop()
	w.settle()
	w.mustRefuse(c, messages.ErrFenced)
	w.mustStop(s, false)
}

// TestUnknownWriteIsShown: the status says why the tail is replayed.
func TestUnknownWriteIsShown(t *testing.T) {
	w := warm(t, messages.Settings{})
	w.append(w.one(1, kindWide))
	w.writeFault = writeVanishes
	w.write1()
	if s := w.core.Status(); s.State != messages.StateInitializing || !errors.Is(s.Err, errDown) {
		t.Errorf("got %v (%v), want %v (%v)", s.State, s.Err, messages.StateInitializing, errDown)
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
