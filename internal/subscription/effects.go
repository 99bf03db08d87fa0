package subscription

import (
	"time"

	"github.com/partita-go/partita/messages"
)

// Effects are what the shell has to carry out after a step, in this order: the end of a wait
// and of the timer, the work, the timer, the status, the alert, and the replies last.
type Effects struct {
	// EndWait says that the deliverer need not wait for the log any longer.
	EndWait bool
	// Disarm says that the timer is not wanted any more.
	Disarm bool
	// Work is for the deliverer, nil for none. What that does meanwhile, nobody wants any more.
	Work messages.DelivererMessage
	Arm  *Alarm
	// Status says that Lane.Status has changed.
	Status bool
	// Alert says that the subscription was stopped: its other lanes are to reload.
	Alert   bool
	Replies []Reply
	// Ended says that the actor should stop.
	Ended bool
}

// Reply is a message for somebody who asked.
type Reply struct {
	To      Requester
	Message any
}

// Alarm asks for a RetryFired after a while.
type Alarm struct {
	Generation uint64
	After      time.Duration
}

func (e *Effects) reset() {
	clear(e.Replies)
	*e = Effects{Replies: e.Replies[:0]}
}
