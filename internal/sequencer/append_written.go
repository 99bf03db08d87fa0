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
		c.writeDivergences = 0
		c.commitBatch()
		c.endBatch(written, nil)
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
	some := false
	for i := range m.Refused {
		some = c.batch.refuse(&m.Refused[i], m.Err) || some
	}
	if !some {
		c.refuseSomebody(m.Err)
		return
	}
	c.endBatch(unwritten, nil)
}

// refuseSomebody tries one by one, if nobody knows who is refused.
func (c *Core) refuseSomebody(err error) {
	writers := 0
	for i := range c.batch.members {
		if c.batch.members[i].fate == writes {
			writers++
		}
	}
	if writers == 1 {
		c.refuseWriters(err)
		return
	}
	c.endBatch(unwritten, nil)
	c.redo.single = c.redo.left > 0
}

// refuseWriters refuses all of the batch that wanted to write.
func (c *Core) refuseWriters(err error) {
	for i := range c.batch.members {
		if m := &c.batch.members[i]; m.fate == writes {
			m.fate, m.err = refused, err
		}
	}
	c.endBatch(unwritten, nil)
}

// refuse marks the members that a refused event speaks of, and reports whether
// there are any.
func (a *attempt) refuse(e *messages.RefusedEvent, err error) (some bool) {
	at := int(e.PLogOffset - a.first)
	if at < 0 || at >= len(a.events) {
		return false
	}
	for i := range a.members {
		m := &a.members[i]
		switch {
		case m.fate != writes || !a.concerns(m, at, e.Seq):
			continue
		case e.Duplicate > 0:
			m.fate, m.duplicate = repeats, e.Duplicate
		default:
			m.fate = refused
		}
		m.err, some = err, true
	}
	return some
}

// concerns reports whether a member would be refused like the event at an index: it
// is the member's own, or the key that is taken is the next one of the sequence for
// the member too.
func (a *attempt) concerns(m *member, at int, seq messages.SeqID) bool {
	events := a.events[m.at : m.at+len(m.append.Drafts)]
	switch {
	case at >= m.at && at < m.at+len(events):
		return true
	case m.append.Workspace != a.events[at].Workspace:
		return false
	case seq == messages.SeqWLogOffset:
		return true
	}
	return slices.ContainsFunc(events, func(e messages.Event) bool { return creates(&e, seq) })
}

// creates reports whether an event creates a record of a sequence.
func creates(e *messages.Event, seq messages.SeqID) bool {
	return slices.ContainsFunc(e.Records, func(r messages.Record) bool { return r.New && r.ID.Seq == seq })
}

// writeDiverged replays the tail and then tries again. If that was of no use, it
// is the events that the log does not take, not the partition's view of it.
func (c *Core) writeDiverged(err error) {
	c.writeDivergences++
	switch {
	case c.state == messages.StateTerminating:
		c.endBatch(unwritten, nil)
		c.giveUpStop(err)
	case c.writeDivergences >= maxDivergences:
		c.refuseSomebody(err)
	default:
		c.endBatch(unwritten, nil)
		c.lastErr = err
		c.becomeActualizing()
	}
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

// writeUnknown leaves it to the log to say what was written; a partition that
// stops, to the next start.
func (c *Core) writeUnknown(err error) {
	if c.state == messages.StateTerminating {
		c.stop.dirty = true
		c.endBatch(unknown, err)
		return
	}
	c.lastErr = err
	c.becomeActualizing()
}
