package sequencer

import (
	"cmp"

	"github.com/partita-go/partita/messages"
)

// DistrustClock says that the clock shows what it should not, and why, or with nil that it is
// right again. Nothing that would get a time of registration begins meanwhile; now is the time
// that the clock should show.
func (c *Core) DistrustClock(why error, now messages.Timestamp) *Effects {
	c.begin(now)
	c.clockErr = why
	if c.state == messages.StateNormal || c.state == messages.StateAlarming {
		c.serve()
	}
	c.watchClock()
	return &c.out
}

// serve shows whether anything is wrong with a partition that takes requests.
func (c *Core) serve() {
	err := cmp.Or(c.clockErr, c.flight.err)
	if err != nil {
		c.setStatus(messages.StateAlarming, err)
		return
	}
	c.setStatus(messages.StateNormal, nil)
}

// watchClock lets the shell look at the clock again, also if nobody asks for anything.
func (c *Core) watchClock() {
	if c.clockErr != nil {
		c.arm(messages.TimerClock, c.settings.RetryDelay)
	}
}
