package actors

import (
	"time"

	"github.com/partita-go/partita/messages"
)

// refusal makes the answers to requests that a mailbox does not take.
func refusal(retryAfter time.Duration) func(message any, why RefuseReason) any {
	return func(_ any, why RefuseReason) any {
		if why == Closed {
			return &messages.Refused{Err: messages.ErrStopped}
		}
		return &messages.Refused{Err: &messages.BusyError{Reason: messages.BusyMailboxFull, RetryAfter: retryAfter}}
	}
}
