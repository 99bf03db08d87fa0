package sequencer

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/partita-go/partita/messages"
)

// writeFault is what the next batch meets.
type writeFault uint8

const (
	writeWorks writeFault = iota
	// writeLies: it is written, and nobody knows.
	writeLies
	// writeVanishes: it is not written, and nobody knows.
	writeVanishes
	// writeNoSpace, writeTailFull, writeDiverges: nothing is written.
	writeNoSpace
	writeTailFull
	writeDiverges
	writeFaults
)

var (
	errPoison   = errors.New("no event that the store takes")
	errConflict = errors.New("key is taken")
	errTwice    = errors.New("id is in the log")
	errNoSpace  = errors.New("no space left")
	errDiverged = errors.New("out of order")
)

// poison begins the body of an event that the store refuses without saying which it
// was.
const poison = "poison"

// taken is a key of somebody else's.
type taken struct {
	workspace messages.WSID
	seq       messages.SeqID
	number    messages.Number
}

// writing is a batch in the appender's hands: the message as it was, too.
type writing struct {
	message *messages.WriteEvents
	was     messages.WriteEvents
}

func newWriting(m *messages.WriteEvents) *writing {
	was := *m
	was.Events = cloneEvents(m.Events)
	return &writing{m, was}
}

func cloneEvents(events []messages.Event) []messages.Event {
	all := slices.Clone(events)
	for i := range all {
		all[i].Numbers = slices.Clone(all[i].Numbers)
		all[i].Records = slices.Clone(all[i].Records)
		all[i].Moves = slices.Clone(all[i].Moves)
	}
	return all
}

// writeEvents writes a batch, all or nothing.
func (w *world) writeEvents(job *writing) *messages.EventsWritten {
	m := job.message
	if !reflect.DeepEqual(*m, job.was) {
		w.t.Fatalf("the batch was changed in the appender's hands:\n%+v\n%+v", job.was, *m)
	}
	answer := &messages.EventsWritten{Generation: m.Generation, First: m.Events[0].PLogOffset}
	if m.Epoch != w.epoch {
		w.hit("batch of an older epoch")
		answer.Outcome, answer.Err = messages.WriteFenced, messages.ErrFenced
		return answer
	}
	fault := w.writeFault
	if w.faultyWrites--; w.faultyWrites <= 0 {
		w.writeFault = writeWorks
	}
	switch fault {
	case writeVanishes:
		answer.Outcome, answer.Err = messages.WriteUnknown, errDown
	case writeNoSpace:
		answer.Outcome, answer.Err = messages.WriteFailed, errNoSpace
	case writeTailFull:
		answer.Outcome, answer.Err = messages.WriteTailFull, errors.New("tail is full")
	case writeDiverges:
		answer.Outcome, answer.Err = messages.WriteDiverged, errDiverged
	default:
		w.judgeBatch(m.Events, answer)
		if answer.Outcome == messages.WriteDone {
			w.appendBatch(cloneEvents(m.Events))
			if fault == writeLies {
				answer.Outcome, answer.Err = messages.WriteUnknown, errDown
			}
		}
	}
	return answer
}

// judgeBatch looks for what the store does not take.
func (w *world) judgeBatch(events []messages.Event, answer *messages.EventsWritten) {
	for i := range events {
		if w.astray[events[i].Workspace] {
			answer.Outcome, answer.Err = messages.WriteDiverged, errDiverged
			return
		}
	}
	for i := range events {
		if e := &events[i]; e.DedupID != (messages.DedupID{}) {
			if first := w.findID(e.Workspace, e.DedupID); first != nil {
				answer.Outcome, answer.Err = messages.WriteRefused, errTwice
				answer.Refused = append(answer.Refused, messages.RefusedEvent{PLogOffset: e.PLogOffset, Duplicate: first.WLogOffset})
			}
		}
	}
	for i := range events {
		e := &events[i]
		switch key := w.takenKey(e); {
		case answer.Outcome != messages.WriteDone:
			return
		case strings.HasPrefix(string(e.Body), poison):
			answer.Outcome, answer.Err = messages.WriteRefused, errPoison
		case key.Seq != 0:
			answer.Outcome, answer.Err = messages.WriteRefused, errConflict
			answer.Refused = []messages.RefusedEvent{{PLogOffset: e.PLogOffset, Taken: key}}
		}
	}
}

// takenKey returns the number whose key an event needs and somebody else has.
func (w *world) takenKey(e *messages.Event) messages.SequenceNumber {
	needs := []messages.SequenceNumber{{Seq: messages.SeqWLogOffset, Number: messages.Number(e.WLogOffset)}}
	for _, r := range e.Records {
		if r.New {
			needs = append(needs, r.ID.SequenceNumber())
		}
	}
	for _, n := range needs {
		if w.taken[taken{e.Workspace, n.Seq, n.Number}] {
			return n
		}
	}
	return messages.SequenceNumber{}
}

// appendBatch writes events that must continue the log, with the next numbers.
func (w *world) appendBatch(events []messages.Event) {
	together := 0
	for i := range events {
		e := events[i]
		switch {
		case together > 0 && (e.Together != 0 || e.DedupID != messages.DedupID{} || e.Workspace != events[i-1].Workspace):
			w.t.Fatalf("event %d does not belong to the one before", e.PLogOffset)
		case together > 0:
			together--
		default:
			together = int(e.Together)
		}
		w.checkNumbering(&e)
		if e.Partition != testPartition || e.Kind != messages.EventBusiness || !w.appendEvent(e) {
			w.t.Fatalf("event %+v does not continue the log, which ends at %d under epoch %d", e, len(w.log), w.epoch)
		}
		w.bodies[string(e.Body)]++
	}
	if together > 0 {
		w.t.Fatalf("a group was cut")
	}
}

// checkNumbering: the numbers of an event are the next ones, in order, explicit ids
// that lift a sequence leave room above them, and no record is ahead of its sequence afterwards.
func (w *world) checkNumbering(e *messages.Event) {
	def, last := w.kinds()[e.WorkspaceKind], make(map[messages.SequencePeriod]messages.Number)
	maps.Copy(last, w.truth[e.Workspace].numbers)
	w.checkTaken(e, last, e.Numbers[:e.Brought])
	for _, n := range e.Numbers[e.Brought:] {
		p := n.SequencePeriod()
		if last[p] == maxOf(n.Seq) || n.Number != max(last[p]+1, def[n.Seq].Initial) {
			w.t.Fatalf("event %d of workspace %d: got number %v after %d", e.PLogOffset, e.Workspace, n, last[p])
		}
		last[p] = n.Number
	}
	for _, r := range e.Records {
		p := messages.SequencePeriod{Seq: r.ID.Seq}
		if s := def[r.ID.Seq]; s.Restarts() || r.New && r.ID.Number > max(s.MaxExplicit(), last[p]) {
			w.t.Fatalf("event %d: explicit id %v is above the cap, or is none", e.PLogOffset, r.ID)
		}
		if r.New {
			last[p] = max(last[p], r.ID.Number)
		}
	}
	w.checkTaken(e, last, e.Moves)
	for _, r := range e.Records {
		if p := (messages.SequencePeriod{Seq: r.ID.Seq}); w.isAhead(e.WorkspaceKind, r.ID, last[p]) {
			w.t.Fatalf("event %d of workspace %d: updates %v, the last number is %d", e.PLogOffset, e.Workspace, r.ID, last[p])
		}
	}
}

// usurp takes the partition over for somebody else, who writes nothing.
func (w *world) usurp() {
	w.epoch++
	w.usurped = true
}

// findID returns the event of a workspace that has a deduplication id.
func (w *world) findID(ws messages.WSID, id messages.DedupID) *messages.Event {
	for i := range w.log {
		if w.log[i].Workspace == ws && w.log[i].DedupID == id {
			return &w.log[i]
		}
	}
	return nil
}

// loadEvents reads the append that has a deduplication id.
func (w *world) loadEvents(m *messages.LoadEvents) *messages.EventsLoaded {
	answer := &messages.EventsLoaded{Generation: m.Generation, Load: m.Load}
	if w.failSearches > 0 {
		w.failSearches--
		answer.Err = fmt.Errorf("search: %w", errDown)
		return answer
	}
	first := w.findID(m.Workspace, m.DedupID)
	switch {
	case first == nil && m.First != 0:
		w.t.Fatalf("searches offset %d of workspace %d for an id that is not in the log", m.First, m.Workspace)
	case first == nil:
	case m.First != 0 && m.First != first.WLogOffset:
		w.t.Fatalf("searches offset %d of workspace %d, want %d", m.First, m.Workspace, first.WLogOffset)
	default:
		answer.Events = w.log[first.PLogOffset-1:][:1+first.Together]
	}
	return answer
}

// append asks for a whole transaction.
func (w *world) append(m messages.Append) *call { return w.appendWrong(m, nil) }

// appendWrong asks for one that is to be refused whatever the state, with an error.
func (w *world) appendWrong(m messages.Append, wrong error) *call {
	long := len(m.Drafts) > w.core.settings.BatchEvents
	switch {
	case long, len(m.Drafts) == 0:
		wrong = errors.Join(wrong, messages.ErrDraft)
	case AppendBytes(&m) > w.core.settings.GroupBytes:
		wrong = errors.Join(wrong, messages.ErrTooLarge)
	}
	w.lastCall++
	c := &call{id: w.lastCall, message: &m, sent: len(w.log), wrong: wrong, long: long}
	w.unanswered[c] = true
	w.appends = append(w.appends, c)
	w.step(c, &m)
	return c
}

// draft is an event with a body of its own that wants numbers.
func (w *world) draft(seqs ...messages.SeqID) messages.Draft {
	w.drafts++
	d := messages.Draft{Body: fmt.Appendf(nil, "body %d", w.drafts)}
	for _, seq := range seqs {
		d.Wanted = append(d.Wanted, messages.Wanted{Seq: seq})
	}
	return d
}

// one asks for one event.
func (w *world) one(ws messages.WSID, kind messages.WSKind, seqs ...messages.SeqID) messages.Append {
	return messages.Append{Workspace: ws, Kind: kind, Drafts: []messages.Draft{w.draft(seqs...)}}
}

// blocker is a workspace whose event keeps the appender busy.
const blocker = messages.WSID(99)

// batched sends Appends that become one batch, which is in the appender's hands
// then: the one before it is answered when all of them have come.
func (w *world) batched(ms ...messages.Append) []*call {
	w.t.Helper()
	first := w.append(w.one(blocker, kindBare))
	w.settleBut(appenderLeaf)
	calls := make([]*call, len(ms))
	for i, m := range ms {
		calls[i] = w.append(m)
	}
	w.settleBut(appenderLeaf)
	w.write1()
	w.mustAppend(first)
	if !w.core.batch.underWay {
		w.t.Fatalf("no batch is under way")
	}
	return calls
}

// write1 lets the appender write one batch and answer.
func (w *world) write1() {
	w.work(appenderLeaf)
	w.deliver(appenderLeaf)
}

// mustAppend returns the answer to an Append, which must have succeeded.
func (w *world) mustAppend(c *call) *messages.Appended {
	w.t.Helper()
	a, ok := c.reply.(*messages.Appended)
	if !ok {
		w.t.Fatalf("%+v: got %T (%v), want it appended", c.message, c.reply, refusalOf(c))
		return nil
	}
	return a
}

// mustWait checks that Appends have no answer yet.
func (w *world) mustWait(calls ...*call) {
	w.t.Helper()
	for i, c := range calls {
		if c.reply != nil {
			w.t.Fatalf("Append %d: got %T (%v), want no answer yet", i, c.reply, refusalOf(c))
		}
	}
}
