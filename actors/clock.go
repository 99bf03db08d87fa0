package actors

import (
	"context"
	"time"

	"github.com/partita-go/partita/messages"
)

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

// deadlineBy returns when a context ends by a clock, 0 if never. The context's own deadline is
// the machine's time, which says nothing about another clock, or about this one once it steps.
func deadlineBy(ctx context.Context, clock Clock) messages.Timestamp {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(1, messages.TimestampOf(clock.Now().Add(time.Until(deadline))))
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
