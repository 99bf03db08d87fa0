package base

import "time"

// Clock tells the time and calls back later. It is a setting, so that tests and
// simulations control time. Implementations are safe for concurrent use.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// AfterFunc calls f once, d from now, on a goroutine of the clock's choice.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is one call that a [Clock] owes. It is an alias so that other packages can describe the same clocks without
// importing this one.
type Timer = interface {
	// Stop prevents the call and reports whether it did: false if the call has
	// begun or was stopped before.
	Stop() bool
}

// SystemClock returns the clock of the machine.
func SystemClock() Clock { return systemClock{} }

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
