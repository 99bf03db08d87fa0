package sequencer

import (
	"math"
	"slices"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// nearlyUsed is a sequence that will end, in a period if it restarts.
type nearlyUsed struct {
	messages.NearlyUsed
	// until is when nobody needs to know any more: when the period is over, or the one that was current when a late
	// event was given a number of it.
	until messages.Timestamp
}

// noticeUses notices which sequences of a workspace are nearly used, in periods that are not over.
func (c *Core) noticeUses(ws *workspace) {
	c.forgetClosed(ws)
	seq, current := -1, calendar.Date(0)
	ws.each(ws.kind, func(i int, period calendar.Date, n messages.Number) {
		if !ws.kind.sequences[i].NearlyUsed(n) {
			return
		}
		if i != seq {
			seq = i
			current, _ = ws.periodAt(i, c.nextTime().Time())
		}
		if period >= current {
			c.noticeUse(ws, i, period, n)
		}
	})
}

// noticeUse takes note of a sequence that is nearly used, once in each period.
func (c *Core) noticeUse(ws *workspace, i int, period calendar.Date, last messages.Number) {
	def := &ws.kind.sequences[i]
	if !def.NearlyUsed(last) {
		return
	}
	use := messages.NearlyUsed{Workspace: ws.id, Seq: def.ID, Period: period, Name: def.Name, Last: last, Largest: def.Max()}
	known := slices.IndexFunc(c.nearlyUsed, func(n nearlyUsed) bool { return n.SameSequence(use) })
	switch {
	case known >= 0:
		c.nearlyUsed[known].Last = last
	case len(c.nearlyUsed) < messages.MaxNearlyUsed:
		c.nearlyUsed = append(c.nearlyUsed, nearlyUsed{use, ws.endOf(i, period, c.nextTime().Time())})
		c.out.Status = true
	}
}

// nextTime returns the registration time of an event that would be numbered now.
func (c *Core) nextTime() messages.Timestamp {
	if c.clockErr != nil {
		return c.lastTime
	}
	return max(c.lastTime, c.now)
}

// endOf returns when a period is over, or that of the time at if it is over then.
func (w *workspace) endOf(i int, period calendar.Date, at time.Time) messages.Timestamp {
	for {
		current, until := w.periodAt(i, at)
		switch {
		case until.IsZero():
			return math.MaxInt64
		case current >= period:
			return messages.TimestampOf(until)
		}
		at = until
	}
}

// forgetClosed forgets the periods of a workspace that are closed.
func (c *Core) forgetClosed(ws *workspace) {
	if len(c.nearlyUsed) == 0 || ws.spans == nil {
		return
	}
	c.forgetUses(func(n nearlyUsed) bool {
		return n.Workspace == ws.id && n.Period < ws.spans[ws.kind.index(n.Seq)].closedBelow
	})
}

func (c *Core) forgetUses(what func(nearlyUsed) bool) {
	before := len(c.nearlyUsed)
	c.nearlyUsed = slices.DeleteFunc(c.nearlyUsed, what)
	c.out.Status = c.out.Status || len(c.nearlyUsed) < before
}

// mostWatched is how long a period is watched without a look at the clock, which may have been set meanwhile.
const mostWatched = 24 * time.Hour

// watchPeriods forgets the periods that are over, and asks for a timer that fires when the next one is.
func (c *Core) watchPeriods() {
	if len(c.nearlyUsed) == 0 || c.clockErr != nil || c.state == messages.StateTerminated || c.state == messages.StateFailed {
		return
	}
	now := c.nextTime()
	c.forgetUses(func(n nearlyUsed) bool { return n.until <= now })
	end := messages.Timestamp(math.MaxInt64)
	for i := range c.nearlyUsed {
		end = min(end, c.nearlyUsed[i].until)
	}
	if end == math.MaxInt64 {
		return
	}
	if c.armed[messages.TimerPeriod] && c.watched <= end {
		return
	}
	end = min(end, c.now+messages.Timestamp(mostWatched/time.Microsecond))
	c.armed[messages.TimerPeriod], c.watched = false, end // it replaces one that would fire later
	c.arm(messages.TimerPeriod, c.remaining(end, 0))
}

func (c *Core) listNearlyUsed() (all []messages.NearlyUsed) {
	for i := range c.nearlyUsed {
		all = append(all, c.nearlyUsed[i].NearlyUsed)
	}
	return all
}
