package actors

// Observer is told about every message of the actors that have it, user and
// system messages alike, without their envelopes. A nil Observer costs one
// comparison a call.
//
// Each message that is Posted is Handled exactly once, after Posted. Taken comes
// between the two, and is missing if the mailbox answered or dropped the message
// itself: the request lane was full, the mailbox was closed, or the sender stopped
// waiting for room or for its turn.
//
// What a message refers to must not be looked at in Handled: with the answer on its
// way, its memory may be in use again.
//
// The goroutine of an actor that is a partition is, for a few messages, that of a sender
// who waits for the answer: see [Mailbox.PostAndRun].
//
// The methods are called without any lock held. They must be safe for concurrent
// use, must not block and must not panic.
type Observer interface {
	// Posted is called when a message arrives, on the sender's goroutine.
	Posted(key Key, message any)
	// Taken is called before the actor handles the message, on its goroutine.
	Taken(key Key, message any)
	// Handled is called when nothing is left to do about the message: on the
	// actor's goroutine after it has handled it, also if it panicked; on the
	// sender's, or that of Close, otherwise.
	Handled(key Key, message any)
}
