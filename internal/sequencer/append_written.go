package sequencer

import (
	"slices"

	"github.com/partita-go/partita/messages"
)

// eventsWritten handles the appender's answer.
func (c *Core) eventsWritten(m *messages.EventsWritten) {
	b := &c.batch
	if m.Generation != c.generation || !b.underWay || m.First != b.first {
		return
	}
	switch m.Outcome {
	case messages.WriteDone:
		c.diverging.forget(c.batch.members)
		c.commitBatch()
		c.endBatch(written)
		c.redo.wrote()
	case messages.WriteRefused:
		c.writeRefused(m)
	case messages.WriteFailed:
		c.refuseWriters(m.Err)
	case messages.WriteTailFull:
		c.flushDue = c.waitingEvents() > 0
		c.refuseWriters(c.busyUnflushed())
	case messages.WriteDiverged:
		c.writeDiverged(m.Err)
	case messages.WriteFenced:
		c.writeFenced(m.Err)
	case messages.WriteUnknown:
		c.writeUnknown(m.Err)
	}
}

// writeRefused refuses those that the log does not take. The others are numbered
// anew.
func (c *Core) writeRefused(m *messages.EventsWritten) {
	some, members := false, len(c.batch.members)
	for i := range m.Refused {
		some = c.batch.refuse(&m.Refused[i], m.Err) || some
	}
	if !some {
		c.refuseSomebody(m.Err)
		return
	}
	c.endBatch(unwritten)
	if c.redo.left > 0 {
		c.redo.refused(members)
	}
}

// refuseSomebody tries one by one, if nobody knows who is refused.
func (c *Core) refuseSomebody(err error) {
	if c.batch.lone() != nil {
		c.refuseWriters(err)
		return
	}
	c.endBatch(unwritten)
	c.redo.single = c.redo.left > 0
}

// lone returns the member that writes, nil if there are others.
func (a *attempt) lone() (lone *member) {
	for i := range a.members {
		m := &a.members[i]
		switch {
		case m.fate != writes:
		case lone != nil:
			return nil
		default:
			lone = m
		}
	}
	return lone
}

// refuseWriters refuses all of the batch that wanted to write.
func (c *Core) refuseWriters(err error) {
	for i := range c.batch.members {
		if m := &c.batch.members[i]; m.fate == writes {
			m.fate, m.err = refused, err
		}
	}
	c.endBatch(unwritten)
}

// refuse marks the members that a refused event speaks of, and reports whether
// there are any.
func (a *attempt) refuse(e *messages.RefusedEvent, err error) (some bool) {
	i := a.writerOf(int(e.PLogOffset - a.first))
	if i < 0 {
		return false
	}
	m := &a.members[i]
	m.fate, m.err = refused, err
	switch {
	case e.Duplicate > 0:
		m.fate, m.duplicate = repeats, e.Duplicate
	case e.Taken.Seq != 0:
		if first, needs, _ := a.demand(m, e.Taken.Seq); needs && first == e.Taken.Number {
			a.refuseBehind(i, e.Taken.Seq, err)
		}
	}
	return true
}

// writerOf returns the index of the member that writes the event at an index, -1 if
// there is none.
func (a *attempt) writerOf(at int) int {
	for i := range a.members {
		m := &a.members[i]
		if m.fate == writes && m.at <= at && at < m.at+len(m.append.Drafts) {
			return i
		}
	}
	return -1
}

// refuseBehind refuses the members behind one that needed the key of the sequence's
// next number, which is taken, as far as it is sure that they would need it now.
func (a *attempt) refuseBehind(i int, seq messages.SeqID, err error) {
	ws := a.members[i].append.Workspace
	for i++; i < len(a.members); i++ {
		m := &a.members[i]
		if m.fate != writes || m.append.Workspace != ws {
			continue
		}
		switch _, needs, passes := a.demand(m, seq); {
		case needs && m.append.Expected != nil:
			// He will hear that the offset is another one.
		case needs:
			m.fate, m.err = refused, err
		case passes:
			return
		}
	}
}

// demand returns the first number of a sequence that a member was given, 0 if it was
// given none, whether it needs that one's key, whatever the number is, and whether
// the sequence may pass that number by it.
func (a *attempt) demand(m *member, seq messages.SeqID) (first messages.Number, needs, passes bool) {
	if seq == messages.SeqWLogOffset {
		return messages.Number(a.events[m.at].WLogOffset), true, true
	}
	if i := slices.IndexFunc(m.numbers, func(n messages.SequenceNumber) bool { return n.Seq == seq }); i >= 0 {
		first = m.numbers[i].Number
	}
	events := a.eventsOf(m)
	for i := range events {
		drafts := m.append.Drafts[i].Records
		for j, r := range events[i].Records {
			switch {
			case !r.New || r.ID.Seq != seq:
			case drafts[j].ID != (messages.RecordID{}):
				// An explicit id may lift the sequence, though in this try it is a number given.
				return first, false, true
			case r.ID.Number == first:
				needs = true
			}
		}
	}
	return first, needs, first != 0
}

// writeFenced: somebody else owns the partition.
func (c *Core) writeFenced(err error) {
	c.refuseWriters(err)
	if c.state == messages.StateTerminating {
		c.giveUpStop(err)
		return
	}
	c.becomeFailed(0, err)
}

// writeUnknown leaves it to the log to say what was written.
func (c *Core) writeUnknown(err error) {
	c.lastErr = err
	c.becomeActualizing()
}
