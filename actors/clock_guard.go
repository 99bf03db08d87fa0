package actors

import (
	"time"

	"github.com/partita-go/partita/messages"
)

// clockGuard reads a clock and tells what it should not say: registration times never fall, so
// that one wrong reading would be given to all events to come. One goroutine uses it.
type clockGuard struct {
	clock Clock
	// highest is the highest reading that was trusted, or time in the log, taken further with the
	// machine's monotonic time, as of checked. It is 0 before the first reading.
	highest messages.Timestamp
	checked time.Time
}

// A time stamp outside of these is always wrong. After the last one nanoseconds do not fit
// into 64 bits.
var (
	firstTime = messages.TimestampOf(time.Unix(1, 0))
	lastTime  = messages.TimestampOf(time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC))
)

// read returns the time. If the clock is further ahead of what it said last than it may be, it
// returns the time that it should show at the most, and a [*messages.ClockError].
func (g *clockGuard) read(limit time.Duration) (messages.Timestamp, error) {
	reading := g.clock.Now()
	now := messages.TimestampOf(reading)
	elapsed := g.elapsed(reading)
	if g.highest != 0 {
		g.highest += messages.Timestamp(elapsed / time.Microsecond)
	}
	tooFar := g.highest != 0 && now > g.highest && now-g.highest > messages.Timestamp(limit/time.Microsecond)
	if tooFar || now < firstTime || now > lastTime {
		return max(g.highest, firstTime), &messages.ClockError{Got: now, Last: g.highest, Limit: limit}
	}
	g.highest = max(g.highest, now)
	return now, nil
}

// notBehind lets the clock show what is in the log: no later time will be earlier whatever it says,
// so that one which was behind the log may be set right.
func (g *clockGuard) notBehind(last messages.Timestamp) {
	if g.highest != 0 {
		g.highest = max(g.highest, min(last, lastTime))
	}
}

// elapsed returns what has passed on the machine since the last call. A reading of another
// clock cannot say: should it carry a monotonic part, that may jump with it.
func (g *clockGuard) elapsed(reading time.Time) time.Duration {
	machine := reading
	if g.clock != SystemClock() {
		machine = time.Now()
	}
	last := g.checked
	g.checked = machine
	if last.IsZero() {
		return 0
	}
	return machine.Sub(last)
}
