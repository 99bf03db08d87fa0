package sequencer

import (
	"fmt"

	"github.com/partita-go/partita/messages"
)

// doubt is an attempt that was under way when the partition took a new epoch. The
// tail says what has become of it: the store writes all of it or nothing, and
// nothing of an older epoch once the new one is taken.
type doubt struct {
	attempt
	verdict verdict
}

// verdict is final: what the tail has said once stays so, also when it is read
// again from a later checkpoint.
type verdict uint8

const (
	// open: nobody has looked yet.
	open verdict = iota
	// landed: the first event's place holds an event of the attempt's epoch.
	landed
	// lost: the log ends before that place, or holds somebody else's event there.
	lost
	// hidden: the place is before the checkpoint, which only another owner can have
	// moved there.
	hidden
)

// doubtBatch leaves the batch under way, if any, to the tail. The appender may
// still read what it was given, so that its memory is not used again.
func (c *Core) doubtBatch() {
	b := &c.batch
	if !b.underWay {
		return
	}
	b.unreserve()
	for i := range b.members {
		c.release(&b.members[i].waiting)
	}
	c.doubt = doubt{attempt: b.attempt}
	b.attempt, b.request, b.records, b.underWay = attempt{}, nil, nil, false
}

// doubtRegister sees whether the tail can say what has become of the attempt.
func (c *Core) doubtRegister(r *messages.Register) {
	d := &c.doubt
	switch {
	case d.first == 0 || d.verdict != open:
	case r.Last < d.first:
		d.verdict = lost
	case r.Checkpoint > d.first:
		d.verdict = hidden
	}
}

// doubtEvent looks at an event of the tail.
func (c *Core) doubtEvent(e *messages.Numbering) error {
	d := &c.doubt
	if e.PLogOffset != d.first || d.verdict != open {
		return nil
	}
	if e.Epoch != d.epoch {
		d.verdict = lost
		return nil
	}
	d.verdict = landed
	if end := d.first + messages.PLogOffset(len(d.events)) - 1; c.replay.last < end {
		return fmt.Errorf("%w: it ends at %d within the batch from %d to %d", messages.ErrBrokenLog, c.replay.last, d.first, end)
	}
	return nil
}

// resolveDoubt answers those of the attempt in doubt, and lets everybody else who
// waited for the end of the replay go on, those that were lost first.
func (c *Core) resolveDoubt() {
	d := c.doubt
	c.doubt = doubt{}
	how := unwritten
	switch d.verdict {
	case landed:
		how = written
	case lost:
	case open, hidden:
		how = unknown
	}
	again := c.conclude(&d.attempt, how, fmt.Errorf("what is at offset %d was flushed already", d.first))
	if c.isStopping() {
		c.refuseAll(again, errStopping)
		return
	}
	c.queue.pushFront(again)
	for _, w := range c.queue.takeAll() {
		if err := c.inTime(w.append.Deadline); err != nil {
			c.refuseWaiter(&w, err)
			continue
		}
		c.admit(w)
	}
}

// abandonAppends ends the attempts whose outcome nobody will learn.
func (c *Core) abandonAppends(cause, refusal error) {
	c.doubtBatch()
	how := unknown
	if c.doubt.verdict == lost {
		how = unwritten
	}
	c.refuseAll(c.conclude(&c.doubt.attempt, how, cause), refusal)
	c.doubt = doubt{}
	c.abandonSearches(cause)
}
