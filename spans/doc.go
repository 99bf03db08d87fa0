// Package spans makes OpenTelemetry spans of what partita does with a request, as the observer of its actors:
//
//	partita.append                an append, from its arrival at the partition until it is answered
//	├─ partita.wait               it waits in the request lane
//	├─ partita.number             it is numbered, and waits for the batch before
//	├─ partita.read               the store is asked for numbers, or for an append of the same deduplication id
//	└─ partita.commit             its batch is written and synced
//	partita.transaction           an interactive transaction, from Start until it has ended
//	├─ partita.wait               it waits for its turn
//	└─ partita.read
//	partita.command               a command; what its handler asks for lies below it
//	└─ partita.wait
//	partita.deliver               events are handed to a subscription's handler
//
// They lie below the span of the context with which the request was made, and a handler's context has the span that it
// is called in. Whoever does not import the package does not link OpenTelemetry's trace API by it.
package spans
