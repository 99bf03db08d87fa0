package sequencer

import (
	"bytes"
	"errors"
	"maps"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// checkAppendReply compares the answer to an Append with what the log says.
func (w *world) checkAppendReply(c *call) {
	m := c.message.(*messages.Append)
	switch r := c.reply.(type) {
	case *messages.Appended:
		w.checkAppended(c, m, r)
	case *messages.Refused:
		if r.Err == nil {
			w.t.Fatalf("an Append is refused without an error")
		}
		w.checkAppendRefused(c, m, r.Err)
	default:
		w.t.Fatalf("an Append is answered with %T", c.reply)
	}
}

// checkAppended: its events are in the log, are what was asked for, and are
// nobody else's.
func (w *world) checkAppended(c *call, m *messages.Append, r *messages.Appended) {
	first := int(r.PLogOffset) - 1
	if first < 0 || first+len(m.Drafts) > len(w.log) {
		w.t.Fatalf("appended at %d, the log ends at %d", r.PLogOffset, len(w.log))
	}
	events := w.log[first : first+len(m.Drafts)]
	e := &events[0]
	switch {
	case r.Partition != testPartition || r.WLogOffset != e.WLogOffset || r.RegisteredAt != e.RegisteredAt:
		w.t.Fatalf("appended %+v, the log has %+v", r, e)
	case int(e.Together) != len(m.Drafts)-1 || e.DedupID != m.DedupID || e.Workspace != m.Workspace || e.WorkspaceKind != m.Kind:
		w.t.Fatalf("appended %+v, the log has %+v", m, e)
	case !naiveSame(m, events, r.Numbers):
		w.t.Fatalf("appended %+v, the log has %+v", m, events)
	case r.Repeated && m.DedupID == messages.DedupID{}:
		w.t.Fatalf("repeated without an id")
	case r.Repeated:
		return
	case w.owners[r.PLogOffset] != nil:
		w.t.Fatalf("offset %d is acknowledged twice", r.PLogOffset)
	case m.Expected != nil && *m.Expected+1 != r.WLogOffset:
		w.t.Fatalf("appended at offset %d of its workspace, expected %d", r.WLogOffset, *m.Expected)
	case m.Deadline != 0 && e.RegisteredAt > m.Deadline && !w.setBack:
		w.t.Fatalf("numbered at %v, after the deadline %v", e.RegisteredAt, m.Deadline)
	}
	w.owners[r.PLogOffset] = c
	w.checkOrder(c, m, r)
}

// naiveSame reports whether events are what a message asks for.
func naiveSame(m *messages.Append, events []messages.Event, all []messages.SequenceNumber) bool {
	var numbers []messages.SequenceNumber
	for i, d := range m.Drafts {
		var seqs []messages.SeqID
		for _, n := range d.Brought {
			seqs = append(seqs, n.Seq)
		}
		for _, wanted := range d.Wanted {
			seqs = append(seqs, wanted.Seq)
			for n := uint32(1); n < wanted.Count; n++ {
				seqs = append(seqs, wanted.Seq)
			}
		}
		numbers = append(numbers, events[i].Numbers...)
		if d.Date != events[i].Date || d.Zone != events[i].Zone || !bytes.Equal(d.Body, events[i].Body) || len(seqs) != len(events[i].Numbers) || len(d.Records) != len(events[i].Records) {
			return false
		}
		if e := &events[i]; int(e.Brought) != len(d.Brought) || !naiveTaken(d.Brought, e.Numbers[:e.Brought]) || !naiveTaken(d.Moves, e.Moves) {
			return false
		}
		for j, n := range events[i].Numbers {
			if n.Seq != seqs[j] {
				return false
			}
		}
		for j, r := range d.Records {
			if r.ID == (messages.RecordID{}) {
				if r.Number < 0 || r.Number >= len(numbers) {
					return false
				}
				r.ID = numbers[r.Number].Record()
			}
			if got := events[i].Records[j]; got.ID != r.ID || got.New != r.New || !bytes.Equal(got.Data, r.Data) {
				return false
			}
		}
	}
	return slices.Equal(numbers, all)
}

// checkOrder: the Appends of a workspace are written in the order in which they were
// sent.
func (w *world) checkOrder(c *call, m *messages.Append, r *messages.Appended) {
	if last := w.lastOwner[m.Workspace]; last != nil {
		if at := last.reply.(*messages.Appended).PLogOffset; last.id > c.id || at > r.PLogOffset {
			w.t.Fatalf("workspace %d: request %d is at offset %d, request %d at %d", m.Workspace, c.id, r.PLogOffset, last.id, at)
		}
	}
	w.lastOwner[m.Workspace] = c
}

// checkAppendRefused checks what a refusal says, and that nothing is left.
func (w *world) checkAppendRefused(c *call, m *messages.Append, err error) {
	if errors.Is(err, messages.ErrOutcomeUnknown) {
		w.checkUnknown(c, m, err)
		return
	}
	w.checkNotThere(c, m)
	truth := w.truth[m.Workspace]
	offset, isOffset := errors.AsType[*messages.OffsetError](err)
	ahead, isAhead := errors.AsType[*messages.RecordAheadError](err)
	backward, isBackward := errors.AsType[*messages.BackwardError](err)
	var unexplained bool
	switch {
	case isOffset:
		last := messages.WLogOffset(truth.last(messages.SeqWLogOffset))
		unexplained = offset.Got == offset.Want || offset.Got > last || offset.Want != *m.Expected || offset.Workspace != m.Workspace
	case isAhead:
		unexplained = !w.runsAhead(m, ahead)
	case isBackward:
		unexplained = !w.goesBack(m, backward)
	case errors.Is(err, messages.ErrKindMismatch):
		unexplained = truth.kind == 0 || truth.kind == m.Kind
	case errors.Is(err, messages.ErrOverflow):
		unexplained = !w.overflows(m)
	case refusedForRows(c, err):
		unexplained = !createsByBoth(m) && !w.namesRestarting(m)
	case errors.Is(err, messages.ErrBusinessDate):
		w.checkDateRefused(m.Workspace, m.Kind, namedDates(m), err)
	case errors.Is(err, calendar.ErrZone), errors.Is(err, messages.ErrUnknownZone), errors.Is(err, calendar.ErrZoneChange):
		unexplained = !w.refusesZone(m, err)
	case errors.Is(err, messages.ErrDedupMismatch):
		first := w.findID(m.Workspace, m.DedupID)
		unexplained = first == nil || w.sameAs(m, first)
	case errors.Is(err, messages.ErrDeadlineExceeded):
		unexplained = m.Deadline == 0 || w.now <= m.Deadline
	case errors.Is(err, errConflict), errors.Is(err, errPoison), errors.Is(err, errNoSpace), errors.Is(err, errDiverged),
		errors.Is(err, errDown), errors.Is(err, messages.ErrBusy), errors.Is(err, messages.ErrStopped), errors.Is(err, messages.ErrInterrupted),
		errors.Is(err, messages.ErrPartitionFailed), errors.Is(err, messages.ErrFenced):
		unexplained = busyReason(c) == messages.BusyActualizing || busyReason(c) == messages.BusyMailboxFull
	default:
		unexplained = !isOneOf(err, c.wrong)
	}
	if unexplained {
		w.t.Fatalf("%+v: refused: %v\nworkspace: %+v", m, err, truth)
	}
	if deniesRepetition(c, err) {
		w.checkRecognised(c, m, err)
	}
}

// deniesRepetition reports whether an error must not be told of an append that was written before.
func deniesRepetition(c *call, err error) bool {
	return errors.Is(err, messages.ErrExpectedOffset) || errors.Is(err, messages.ErrRecordAhead) || errors.Is(err, messages.ErrOverflow) ||
		errors.Is(err, messages.ErrBusinessDate) || errors.Is(err, calendar.ErrZoneChange) || errors.Is(err, messages.ErrBackward) ||
		c.long && errors.Is(err, messages.ErrDraft) || errors.Is(err, messages.ErrTooLarge) || refusedForRows(c, err)
}

// checkRecognised: an append that was in the log when it was sent again is a
// repetition, whatever else is wrong with it.
func (w *world) checkRecognised(c *call, m *messages.Append, err error) {
	if m.DedupID == (messages.DedupID{}) {
		return
	}
	if first := w.findID(m.Workspace, m.DedupID); first != nil && int(first.PLogOffset) <= c.sent {
		w.t.Fatalf("%+v is in the log at %d, but refused: %v", m, first.PLogOffset, err)
	}
}

// checkUnknown: that an outcome is unknown may be said of what was in the appender's
// hands, or is in the log already, and has a cause.
func (w *world) checkUnknown(c *call, m *messages.Append, err error) {
	for _, cause := range []error{messages.ErrStopped, messages.ErrInterrupted, messages.ErrPartitionFailed, errDown} {
		if errors.Is(err, cause) {
			return
		}
	}
	if !w.hidden {
		w.t.Fatalf("%+v (%d): unknown for no reason: %v", m, c.id, err)
	}
}

// checkNotThere: a refused append has left nothing.
func (w *world) checkNotThere(c *call, m *messages.Append) {
	if m.DedupID == (messages.DedupID{}) && w.bodies[bodyOf(m)] > 0 {
		w.t.Fatalf("%+v (%d) was refused with %v, but is in the log", m, c.id, refusalOf(c))
	}
}

// refusedForRows reports whether a message, in which nothing is wrong by itself, was refused since its
// rows and its numbers do not go together.
func refusedForRows(c *call, err error) bool {
	return c.wrong == nil && errors.Is(err, messages.ErrDraft)
}

// createsByBoth reports whether a message has rows of one sequence by the index of a number and by
// an id, of which one is new: they can be the same row.
func createsByBoth(m *messages.Append) bool {
	given := givenSeqs(m)
	indexed, named := make(map[messages.SeqID]bool), make(map[messages.SeqID]bool)
	for i := range m.Drafts {
		for _, r := range m.Drafts[i].Records {
			rows, seq := named, r.ID.Seq
			if r.ID == (messages.RecordID{}) {
				rows, seq = indexed, given[r.Number]
			}
			rows[seq] = rows[seq] || r.New
		}
	}
	for seq, isNew := range indexed {
		if other, ok := named[seq]; ok && (isNew || other) {
			return true
		}
	}
	return false
}

// isOneOf reports whether an error is one of those joined.
func isOneOf(err, joined error) bool {
	if all, ok := joined.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(all.Unwrap(), func(e error) bool { return errors.Is(err, e) })
	}
	return joined != nil && errors.Is(err, joined)
}

// bodyOf is what tells a message from all others.
func bodyOf(m *messages.Append) string {
	if len(m.Drafts) == 0 {
		return ""
	}
	return string(m.Drafts[0].Body)
}

// verifyAppends checks that what was acknowledged is in the log once, and what was
// refused is not.
func (w *world) verifyAppends() {
	w.t.Helper()
	for _, c := range w.appends {
		m := c.message.(*messages.Append)
		n := w.bodies[bodyOf(m)]
		_, appended := c.reply.(*messages.Appended)
		if n > 1 || appended && n == 0 {
			w.t.Fatalf("%+v: answered %+v, and %d times in the log", m, c.reply, n)
		}
		if err := refusalOf(c); err != nil && !errors.Is(err, messages.ErrOutcomeUnknown) {
			w.checkNotThere(c, m)
		}
	}
}

// overflows reports whether the numbers that a message asks for are not there.
func (w *world) overflows(m *messages.Append) bool {
	if m.DedupID != (messages.DedupID{}) && slices.Contains(givenSeqs(m), seqRound) {
		return true // It was judged before the log was searched for the id, and perhaps in another week.
	}
	last := w.lastEver(m.Workspace)
	for i := range m.Drafts {
		if !w.count(last, m, i) {
			return true
		}
	}
	return last[messages.SequencePeriod{Seq: messages.SeqWLogOffset}] > maxOf(messages.SeqWLogOffset)-messages.Number(len(m.Drafts))
}

// lastEver are the last numbers of a workspace, those of closed periods included: a message may have been judged before
// its period was closed, and be answered after that.
func (w *world) lastEver(ws messages.WSID) map[messages.SequencePeriod]messages.Number {
	last := make(map[messages.SequencePeriod]messages.Number)
	for i := range w.log {
		if e := &w.log[i]; e.Workspace == ws {
			for _, n := range slices.Concat(e.Numbers, e.Moves) {
				last[n.SequencePeriod()] = n.Number
			}
		}
	}
	maps.Copy(last, w.truth[ws].numbers)
	return last
}

// count takes a draft into the last numbers, and reports whether it has all of its own.
func (w *world) count(last map[messages.SequencePeriod]messages.Number, m *messages.Append, draft int) (all bool) {
	defs, d := w.kinds()[m.Kind], &m.Drafts[draft]
	all = w.takes(last, m, d, d.Brought)
	for _, wanted := range d.Wanted {
		p := messages.SequencePeriod{Seq: wanted.Seq, Period: w.periodAt(m.Workspace, m.Kind, wanted.Seq, d.Date, w.core.lastTime)}
		for range max(wanted.Count, 1) {
			if last[p] == maxOf(wanted.Seq) {
				all = false
				break
			}
			last[p] = max(last[p]+1, defs[wanted.Seq].Initial)
		}
	}
	for _, r := range d.Records {
		if p := (messages.SequencePeriod{Seq: r.ID.Seq}); r.New && r.ID.Number >= defs[r.ID.Seq].Initial {
			last[p] = max(last[p], r.ID.Number)
		}
	}
	return w.takes(last, m, d, d.Moves) && all
}

// runsAhead reports whether a message updates the record that an error names, under a
// number that was not given out when the message was judged. More are now, perhaps all.
func (w *world) runsAhead(m *messages.Append, e *messages.RecordAheadError) bool {
	last := maps.Clone(w.truth[m.Workspace].numbers)
	if last == nil {
		last = make(map[messages.SequencePeriod]messages.Number)
	}
	for i := range m.Drafts {
		w.count(last, m, i)
		named := func(r messages.DraftRecord) bool { return !r.New && r.ID == e.ID }
		if e.Last <= last[messages.SequencePeriod{Seq: e.ID.Seq}] && slices.ContainsFunc(m.Drafts[i].Records, named) {
			return e.Workspace == m.Workspace && w.isAhead(m.Kind, e.ID, e.Last)
		}
	}
	return false
}

// isAhead reports whether a record's number is still to be given out by its sequence.
func (w *world) isAhead(kind messages.WSKind, id messages.RecordID, last messages.Number) bool {
	return id.Number > last && id.Number >= w.kinds()[kind][id.Seq].Initial
}

// sameAs reports whether a message would write the events that begin with one.
func (w *world) sameAs(m *messages.Append, first *messages.Event) bool {
	events := w.log[first.PLogOffset-1:][:1+first.Together]
	if len(events) != len(m.Drafts) || first.WorkspaceKind != m.Kind {
		return false
	}
	var numbers []messages.SequenceNumber
	for _, e := range events {
		numbers = append(numbers, e.Numbers...)
	}
	return naiveSame(m, events, numbers)
}

// refusesZone reports whether a message has a zone that is none, or one too many, or its workspace one that nobody knows.
func (w *world) refusesZone(m *messages.Append, err error) bool {
	truth := w.truth[m.Workspace]
	switch {
	case errors.Is(err, calendar.ErrZone):
		return slices.ContainsFunc(m.Drafts, func(d messages.Draft) bool { return d.Zone != "" && checkZone(d.Zone) != nil })
	case errors.Is(err, messages.ErrUnknownZone):
		return slices.ContainsFunc(truth.zones, func(c calendar.ZoneChange) bool { return !c.Zone.Known() })
	}
	return len(truth.ownZones())+len(m.Drafts) > calendar.MaxZoneChanges
}
