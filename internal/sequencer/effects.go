package sequencer

import (
	"time"

	"github.com/partita-go/partita/messages"
)

// Effects are what the shell has to carry out after a step, in this order:
// Unwatch, Watch, the leaves' messages, the timers, the status, and the replies last.
type Effects struct {
	// Unwatch is the owner to be watched no longer, Watch from now on; nil: none.
	// Both may be the same: one transaction has ended and the next one begun.
	Unwatch Requester
	Watch   Requester

	Replies    []Reply
	Reader     []messages.ReaderMessage
	Flusher    *messages.WriteProjections
	Appender   *messages.WriteEvents
	Actualizer []messages.ActualizerMessage
	Arm        []Alarm

	// Status says that Core.Status has changed in state, in error, in what is nearly used, or in how far a replay is.
	Status bool
	// Stopped says that the partition has ended and the actor should stop.
	Stopped bool
}

// Reply is a message for somebody who asked.
type Reply struct {
	To      Requester
	Message any
}

// Alarm asks for a TimerFired after a while. There is at most one of each kind: one
// that is armed while it runs, after new settings or for an earlier time, replaces the earlier one.
type Alarm struct {
	Timer messages.Timer
	After time.Duration
}

func (e *Effects) reset() {
	clear(e.Replies)
	e.Replies = e.Replies[:0]
	e.Reader = e.Reader[:0]
	e.Actualizer = e.Actualizer[:0]
	e.Arm = e.Arm[:0]
	e.Watch, e.Unwatch, e.Flusher, e.Appender = nil, nil, nil, nil
	e.Status, e.Stopped = false, false
}
