package actors

import (
	"time"

	"github.com/partita-go/partita/messages"
)

// refusal makes the answers to requests that a mailbox does not take, and counts them, unless tally is nil.
func refusal(retryAfter time.Duration, tally *Tally) func(message any, why RefuseReason) any {
	return func(_ any, why RefuseReason) any {
		refused := &messages.Refused{Err: messages.ErrStopped}
		if why == LaneFull {
			refused.Err = &messages.BusyError{Reason: messages.BusyMailboxFull, RetryAfter: retryAfter}
		}
		if tally != nil {
			tally.refuse(refused.Err)
		}
		return refused
	}
}
