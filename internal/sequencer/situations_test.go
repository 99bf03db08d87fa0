package sequencer

import (
	"errors"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// hitReply counts the situation that a reply shows.
func (w *world) hitReply(c *call) {
	switch m := c.message.(type) {
	case *messages.Start:
		w.hitStartReply(c)
	case *messages.Next:
		w.hitNextReply(c, m)
	case *messages.Raise:
		w.hitRaiseReply(c, m)
	case *messages.Flush:
		w.hitFlushReply(c)
	case *messages.Cancel:
		w.hitIf(refusalOf(c) == nil, "cancelled")
	case *messages.Actualize:
		w.hitIf(refusalOf(c) == nil, "actualized")
	}
}

func (w *world) hitIf(holds bool, what string) {
	if holds {
		w.hit(what)
	}
}

func (w *world) hitStartReply(c *call) {
	o := c.owner
	if o.granted {
		w.hitIf(o.waited != "", o.waited)
		w.hitIf(w.truth[o.ws].kind == 0 && w.lastKind[o.ws] != 0 && w.lastKind[o.ws] != o.kind, "kind chosen anew")
		w.lastKind[o.ws] = o.kind
		return
	}
	err := refusalOf(c)
	w.hitIf(errors.Is(err, messages.ErrKindMismatch), "kind mismatch")
	w.hitIf(errors.Is(err, messages.ErrDeadlineExceeded), "deadline passed")
	switch busyReason(c) {
	case messages.BusyUnflushed:
		w.hit("busy: unflushed")
	case messages.BusyActualizing:
		w.hit("busy: actualizing")
	case messages.BusyStopping:
		w.hit("busy: stopping")
	case messages.BusyMailboxFull, messages.BusyNoQuorum:
	}
}

func (w *world) hitNextReply(c *call, m *messages.Next) {
	err := refusalOf(c)
	w.hitIf(err == nil, "number")
	w.hitIf(err == nil && m.Count > 1, "range")
	w.hitIf(errors.Is(err, messages.ErrOverflow), "overflow")
	w.hitIf(errors.Is(err, messages.ErrOverflow) && w.open == c.owner && w.left(c.owner, m.Seq) > 0, "overflow of a range only")
	unknown := errors.Is(err, messages.ErrUnknownSequence)
	w.hitIf(unknown && m.Seq == messages.SeqWLogOffset, "WLog offset asked for")
	w.hitIf(unknown && m.Seq != messages.SeqWLogOffset, "unknown sequence")
}

func (w *world) hitRaiseReply(c *call, m *messages.Raise) {
	err := refusalOf(c)
	w.hitIf(err == nil, "raised")
	w.hitIf(err == nil && m.ID.Number < w.kinds()[c.owner.kind][m.ID.Seq].Initial, "raised to a low id")
	w.hitIf(errors.Is(err, messages.ErrExplicitID), "raised above the cap")
	w.hitIf(errors.Is(err, messages.ErrUnknownSequence), "raised a foreign sequence")
}

func (w *world) hitFlushReply(c *call) {
	o := c.owner
	late := w.open != o
	switch err := refusalOf(c); {
	case err == nil && !late:
		w.hit("flushed")
	case err == nil && o.flushed:
		w.hit("flush repeated by its owner")
	case err == nil:
		w.hit("flushed late")
	case errors.Is(err, messages.ErrFenced):
		w.hit("late flush fenced")
	case errors.Is(err, messages.ErrOutcomeUnknown):
		w.hit("late flush unknown")
	}
	if refusalOf(c) == nil {
		o.flushed = true
	}
}

// hitCore counts the situations that the core's state shows.
func (w *world) hitCore() {
	c := w.core
	w.hitIf(c.state == messages.StateAlarming, "alarming")
	for _, r := range c.waiters() {
		w.hitIf(r.ws != nil && !c.cache.Contains(r.ws.id), "evicted while waiting")
	}
	w.hitIf(c.redo.single, "one by one")
	w.hitIf(c.batch.underWay && len(c.batch.events) > 3, "batch of many")
	for i := range c.batch.members {
		m := &c.batch.members[i]
		asked := m.from.(*call)
		asked.followed = asked.followed || m.fate == follows
		asked.rested = asked.rested || m.fate == rests
	}
	for i := range c.doubt.members {
		c.doubt.members[i].from.(*call).doubted = true
	}
}

// hitAppendReply counts the situation that the answer to an Append shows.
func (w *world) hitAppendReply(c *call) {
	m := c.message.(*messages.Append)
	if r, ok := c.reply.(*messages.Appended); ok {
		w.hitAppended(c, m, r)
		return
	}
	err := refusalOf(c)
	overflow, isOverflow := errors.AsType[*messages.OverflowError](err)
	_, offset := errors.AsType[*messages.OffsetError](err)
	for what, holds := range map[string]bool{
		"append refused: offset":                           offset,
		"append refused: offset in flight":                 offset && c.rested,
		"append refused: kind":                             errors.Is(err, messages.ErrKindMismatch),
		"append refused: kind in flight":                   errors.Is(err, messages.ErrKindMismatch) && c.rested,
		"append refused: overflow":                         errors.Is(err, messages.ErrOverflow),
		"append refused: overflow in flight":               errors.Is(err, messages.ErrOverflow) && c.rested,
		"append refused: overflow in a group":              errors.Is(err, messages.ErrOverflow) && len(m.Drafts) > 1,
		"append refused: overflow in a period":             isOverflow && overflow.Seq == seqRound,
		"append refused: row under a number that restarts": refusedForRows(c, err) && w.namesRestarting(m),
		"append refused: backward":                         errors.Is(err, messages.ErrBackward),
		"append refused: backward in flight":               errors.Is(err, messages.ErrBackward) && c.rested,
		"append refused: ahead":                            errors.Is(err, messages.ErrRecordAhead),
		"append refused: ahead in flight":                  errors.Is(err, messages.ErrRecordAhead) && c.rested,
		"append refused: ahead in a group":                 errors.Is(err, messages.ErrRecordAhead) && len(m.Drafts) > 1,
		"append refused: other drafts":                     errors.Is(err, messages.ErrDedupMismatch),
		"append refused: other drafts in flight":           errors.Is(err, messages.ErrDedupMismatch) && c.followed,
		"append refused: deadline":                         errors.Is(err, messages.ErrDeadlineExceeded),
		"append refused: conflict":                         errors.Is(err, errConflict),
		"append refused: by the store":                     errors.Is(err, errPoison),
		"append refused: no space":                         errors.Is(err, errNoSpace),
		"append refused: diverged":                         errors.Is(err, errDiverged),
		"append refused: fenced":                           errors.Is(err, messages.ErrFenced),
		"append refused: failed":                           errors.Is(err, messages.ErrPartitionFailed),
		"append refused: load failed":                      errors.Is(err, errDown) && !errors.Is(err, messages.ErrOutcomeUnknown),
		"append refused: draft":                            errors.Is(err, messages.ErrDraft),
		"append refused: unflushed":                        busyReason(c) == messages.BusyUnflushed,
		"append refused: stopping":                         busyReason(c) == messages.BusyStopping,
		"append unknown":                                   errors.Is(err, messages.ErrOutcomeUnknown),
		"append unknown in doubt":                          errors.Is(err, messages.ErrOutcomeUnknown) && c.doubted,
		"append unknown: follower":                         errors.Is(err, messages.ErrOutcomeUnknown) && c.followed,
		"append unknown: search failed":                    errors.Is(err, messages.ErrOutcomeUnknown) && errors.Is(err, errDown),
	} {
		w.hitIf(holds, what)
	}
}

func (w *world) hitAppended(c *call, m *messages.Append, r *messages.Appended) {
	e := &w.log[r.PLogOffset-1]
	for what, holds := range map[string]bool{
		"appended":                          !r.Repeated,
		"several dates in a group":          !r.Repeated && severalDates(m),
		"appended a group":                  !r.Repeated && len(m.Drafts) > 1,
		"appended where expected":           !r.Repeated && m.Expected != nil,
		"appended with an id":               !r.Repeated && m.DedupID != messages.DedupID{},
		"appended with explicit ids":        !r.Repeated && len(e.Numbering().Numbers) > len(e.Numbers)+len(e.Moves),
		"appended with an update":           !r.Repeated && updates(m),
		"landed in doubt":                   !r.Repeated && e.Epoch < w.core.epoch,
		"lost in doubt, appended later":     !r.Repeated && c.doubted && e.Epoch == w.core.epoch,
		"rested, appended later":            !r.Repeated && c.rested,
		"followed, appended later":          !r.Repeated && c.followed,
		"repeated":                          r.Repeated && !c.followed,
		"repeated in flight":                r.Repeated && c.followed,
		"repeated though its offset is old": r.Repeated && m.Expected != nil && *m.Expected+1 == r.WLogOffset,
	} {
		w.hitIf(holds, what)
	}
	w.hitIf(!r.Repeated && c.waited != "", c.waited)
}

// severalDates reports whether an append has events with different business dates.
func severalDates(m *messages.Append) bool {
	return slices.ContainsFunc(datesOf(m), func(d calendar.Date) bool { return d != m.Drafts[0].Date })
}

// updates reports whether an append updates a record under an id of its own.
func updates(m *messages.Append) bool {
	return slices.ContainsFunc(m.Drafts, func(d messages.Draft) bool {
		return slices.ContainsFunc(d.Records, func(r messages.DraftRecord) bool { return !r.New && r.ID != messages.RecordID{} })
	})
}

// hitEventsWritten counts what the appender says.
func (w *world) hitEventsWritten(m *messages.EventsWritten) {
	if m.Generation != w.core.generation {
		w.hit("old answer about a batch")
		return
	}
	for i, e := range m.Refused {
		at := int(e.PLogOffset - m.First)
		w.hitIf(e.Duplicate > 0, "batch refused: duplicate")
		w.hitIf(i == 1, "batch refused: several")
		w.hitIf(at == 0, "batch refused: first")
		w.hitIf(at > 0 && at < len(w.core.batch.events)-1, "batch refused: in the middle")
		w.hitIf(at > 0 && at == len(w.core.batch.events)-1, "batch refused: last")
	}
	w.hitIf(m.Outcome == messages.WriteRefused && len(m.Refused) == 0, "batch refused: nobody knows whom")
	w.hitIf(m.Outcome == messages.WriteTailFull, "tail full")
	w.hitIf(m.Outcome == messages.WriteUnknown, "write unknown")
	w.hitIf(m.Outcome == messages.WriteFenced, "write fenced")
	w.hitIf(m.Outcome == messages.WriteDiverged, "write diverged")
}
