package sequencer

import (
	"errors"
	"fmt"

	"github.com/partita-go/partita/messages"
)

// maxLate is how many late flushes may wait for their answer.
const maxLate = 1024

// lateFlush is a Flush whose transaction is not open any more. The log answers
// it, as soon as nothing older can be under way.
type lateFlush struct {
	from  Requester
	token messages.Token
	asked bool
}

func isFenced(err error) bool { return errors.Is(err, messages.ErrFenced) }

// flushLate answers a Flush that came late or was repeated, now or when the log
// has been asked.
func (c *Core) flushLate(from Requester, t messages.Token) {
	switch {
	case t == c.lastFlushed && t != (messages.Token{}):
		c.reply(from, &messages.Flushed{})
	case t.Partition != c.partition || t.PLogOffset == 0:
		c.refuseToken(from, t)
	case len(c.late) >= maxLate:
		c.busy(from, messages.BusyMailboxFull, c.settings.RetryDelay)
	default:
		c.late = append(c.late, lateFlush{from: from, token: t})
		c.askLate()
	}
}

// askLate asks the log about every late flush that it can answer now.
func (c *Core) askLate() {
	if c.state == messages.StateInitializing {
		return
	}
	kept := c.late[:0]
	for _, l := range c.late {
		if !l.asked && l.token.PLogOffset > c.durable {
			c.refuseToken(l.from, l.token)
			continue
		}
		if !l.asked {
			l.asked = true
			c.out.Reader = append(c.out.Reader, &messages.FindEvent{Generation: c.generation, Token: l.token})
		}
		kept = append(kept, l)
	}
	clear(c.late[len(kept):])
	c.late = kept
}

// found answers the late flush that asked.
func (c *Core) found(m *messages.Found) {
	if m.Generation != c.generation {
		return
	}
	for i, l := range c.late {
		if !l.asked || l.token != m.Token {
			continue
		}
		c.late = append(c.late[:i], c.late[i+1:]...)
		switch {
		case m.Err != nil:
			c.refuse(l.from, fmt.Errorf("%w: %v: %w", messages.ErrOutcomeUnknown, l.token, m.Err))
		case m.Present:
			c.reply(l.from, &messages.Flushed{})
		default:
			c.refuse(l.from, fmt.Errorf("%w: %v is not in the log", messages.ErrFenced, l.token))
		}
		return
	}
}

// refuseLate answers those that the log cannot answer any more.
func (c *Core) refuseLate(cause error) {
	for _, l := range c.late {
		c.refuse(l.from, fmt.Errorf("%w: %v: %w", messages.ErrOutcomeUnknown, l.token, cause))
	}
	c.late = nil
}
