package sequencer

import (
	"fmt"
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

// ending is how an attempt has ended.
type ending uint8

const (
	// unwritten: nothing of it is in the log, and never will be.
	unwritten ending = iota
	// written: all of it is in the log.
	written
	// unknown: nobody will learn which of the two.
	unknown
)

// endBatch answers those of the batch for whom it is clear what has become of
// them. The others are judged again, before anybody else.
func (c *Core) endBatch(how ending) {
	again := c.conclude(&c.batch.attempt, how, nil)
	c.batch.end()
	if len(again) == 0 {
		c.redo.endIfDone()
		return
	}
	if c.state == messages.StateTerminating {
		c.refuseAll(again, errStopping)
		return
	}
	c.queue.pushFront(again)
	c.redo.left += len(again)
}

// conclude answers the members of an attempt in their order, and returns those
// that are to be judged again.
func (c *Core) conclude(a *attempt, how ending, cause error) (again []waiting) {
	for i := range a.members {
		if !c.concludeMember(a, &a.members[i], how, cause) {
			again = append(again, a.members[i].waiting)
		}
	}
	return again
}

// concludeMember reports whether it is clear what has become of a member. What
// follows or rests stands behind the member that it depends on.
func (c *Core) concludeMember(a *attempt, m *member, how ending, cause error) bool {
	switch {
	case m.fate == refused:
		c.refuseWaiter(&m.waiting, m.err)
	case m.fate == repeats:
		m.search = c.search(&m.waiting, m.duplicate, m.err)
	case m.fate == follows && a.members[m.at].fate == repeats:
		leader := &a.members[m.at]
		c.joinSearch(&m.waiting, leader.search, leader.err)
	case how == unwritten:
		return false
	case m.fate == rests && how == unknown:
		return false
	case how == unknown:
		c.refuseWaiter(&m.waiting, outcomeUnknown(cause))
	case m.fate == rests:
		c.refuseUnlessRepeated(&m.waiting, m.err)
	case m.fate == follows:
		c.answerRepeated(&m.waiting, a.eventsOf(&a.members[m.at]))
	default:
		c.answerAppended(a, m)
	}
	return true
}

// eventsOf returns the events of a member that writes.
func (a *attempt) eventsOf(m *member) []messages.Event {
	return a.events[m.at : m.at+len(m.append.Drafts)]
}

func (c *Core) answerAppended(a *attempt, m *member) {
	e := &a.events[m.at]
	c.reply(m.from, &messages.Appended{
		Partition:    c.partition,
		PLogOffset:   e.PLogOffset,
		WLogOffset:   e.WLogOffset,
		RegisteredAt: e.RegisteredAt,
		Numbers:      m.numbers,
	})
	c.answered(&m.waiting)
}

func outcomeUnknown(cause error) error {
	return fmt.Errorf("%w: %w", messages.ErrOutcomeUnknown, cause)
}

func (c *Core) refuseAll(all []waiting, err error) {
	for i := range all {
		c.refuseWaiter(&all[i], err)
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
		if takesOver(&m.append.Drafts[i], seq) {
			return first, false, true // it lifts the sequence, whatever was given before
		}
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

// redo are the Appends in front of the queue that were in an attempt which was
// refused. They are written before anybody else joins them, so that they get ahead
// whatever comes behind.
type redo struct {
	left int
	// single says that they are written one by one, since nobody knows which of them
	// is refused.
	single bool
	// refusals counts the attempts that were refused; most is how many are tried
	// together, 0 for as many as there is room for.
	refusals, most int
}

// fewRefusals is how many attempts may be refused before fewer are tried together. Each
// names one of those that are refused: if they are many, most of what is done for the
// others is done in vain.
const fewRefusals = 4

// refused notes that an attempt of so many was refused.
func (r *redo) refused(members int) {
	if r.refusals++; r.refusals > fewRefusals {
		r.most = max(1, members/2)
	}
}

// wrote notes that an attempt succeeded: twice as many are tried next.
func (r *redo) wrote() { r.most *= 2 }

// endIfDone forgets how it went once nobody is left.
func (r *redo) endIfDone() {
	if r.left == 0 {
		*r = redo{}
	}
}

// maxDiverging is how many workspaces are remembered.
const maxDiverging = 64

// diverging are workspaces whose events the log did not take, though its tail was
// replayed between the tries. Replaying it again is of no use to them.
type diverging map[messages.WSID]struct{}

// note remembers a workspace, and forgets the others if there are too many.
func (d *diverging) note(ws messages.WSID) {
	if *d == nil {
		*d = make(diverging)
	}
	if len(*d) >= maxDiverging {
		clear(*d)
	}
	(*d)[ws] = struct{}{}
}

// forget forgets the workspaces of members whose events were written.
func (d diverging) forget(members []member) {
	for i := range members {
		if len(d) == 0 {
			return
		}
		if m := &members[i]; m.fate == writes {
			delete(d, m.append.Workspace)
		}
	}
}

// writeDiverged replays the tail and then tries again. If that was of no use, it
// is the events that the log does not take, not the partition's view of it. Each
// Append's tries are counted, since others may be written meanwhile.
func (c *Core) writeDiverged(err error) {
	switch {
	case c.state == messages.StateTerminating:
		c.endBatch(unwritten)
		c.lastErr = err
		c.becomeActualizing()
	case c.refuseDiverging(err):
		c.endBatch(unwritten)
	case c.batch.diverged() < maxDivergences:
		c.endBatch(unwritten)
		c.lastErr = err
		c.becomeActualizing()
	default:
		if m := c.batch.lone(); m != nil {
			c.diverging.note(m.append.Workspace)
		}
		c.refuseSomebody(err)
	}
}

// refuseDiverging refuses the members whose workspaces are known to diverge, and
// reports whether there are any.
func (c *Core) refuseDiverging(err error) (some bool) {
	for i := range c.batch.members {
		m := &c.batch.members[i]
		if _, known := c.diverging[m.append.Workspace]; known && m.fate == writes {
			m.fate, m.err, some = refused, err, true
		}
	}
	return some
}

// diverged counts a try of the members, and returns the most tries of any.
func (a *attempt) diverged() (most int) {
	for i := range a.members {
		if m := &a.members[i]; m.fate == writes {
			m.divergences++
			most = max(most, m.divergences)
		}
	}
	return most
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
