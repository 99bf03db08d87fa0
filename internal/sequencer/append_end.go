package sequencer

import (
	"fmt"

	"github.com/partita-go/partita/messages"
)

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
