package ids

import "time"

// Clock tells the time and calls back later. It is a setting, so that tests control time; the clocks of package partition
// are clocks of this package too. Implementations are safe for concurrent use.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// AfterFunc calls f once, d from now, on a goroutine of the clock's choice.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is one call that a [Clock] owes. Stop prevents it and reports whether it did.
type Timer = interface{ Stop() bool }

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// untilNextSecond returns how long the second lasts: 1 ns to 1 s.
func untilNextSecond(now time.Time) time.Duration {
	return time.Second - time.Duration(now.Nanosecond())
}
