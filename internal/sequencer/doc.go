// Package sequencer is the pure state machine of one partition's sequences. It
// knows no actor, storage, clock or goroutine: [Core.Step] takes a message and
// the time, and returns the effects that the shell has to carry out.
//
//	         Start            Flush, Cancel
//	┌─ idle ────────> open ─────────────┐
//	│   ^  <────────────────────────────┘
//	│   │ tail replayed      │ Actualize, owner gone, limit passed
//	│  actualizing <─────────┘
//	│
//	└─ Stop ─> stopping ─> stopped          any ─ fault ─> failed
//
// One function per life-cycle state (states.go) says which message is legal when.
//
// Starts and Appends wait in one queue. While no transaction is open, the Appends at
// its head are judged, numbered and written together: while that batch is under way
// nothing else is granted.
//
//	Append ──> load? ──> queue ──> judge ──> batch ──> appender ──> durable ──> Appended
//	                       ^                   │ refused, but not for this one
//	                       ├───────────────────┤ or lost, says the tail
//	                       └─── doubt <────────┘ nobody knows, or a new epoch
//
// A number passes through these places, and is looked up in this order (what is
// reserved, only by those it is reserved for):
//
//	transaction   reserved: given to the open transaction, goes back if it fails
//	batch         likewise, for the Appends that are being written
//	cache         last numbers of the workspaces used last, bounded
//	unflushed     durable in the log, not yet handed to the flusher
//	flight        in the flusher's hands
//	retired       flushed while a load was under way that may not have seen it
//	the store     read by a load
//
// A sequence may restart in each period of local time. Then it has a last number for each
// period, in each of these places: that of the newest one where a sequence's is, the others in
// a list beside it. The period is that of the event's time, or of the business date that the caller
// gives; it is decided when the number is reserved. The cache has the newest periods, always the
// current one, and those that were asked for: a workspace says from which one on it knows them all. An
// older one is loaded when a request needs it, before the request joins the queue. A sequence that does
// not keep all closes the oldest when a new one begins, here and in the store by the same rule.
//
// The scenarios in testdata show all of this, one thing each: what the machine is told,
// and what it does then. They are to be read in order, and so are the files:
//
//	states.go          which message is legal in which state
//	core.go            a partition's state, and one step
//	effects.go         what the shell has to do after a step
//	transaction.go     numbers one by one, for an owner that writes its event itself
//	reservation.go     how they are counted, by the partition or by the owner
//	takeover.go        numbers of an old system, which come along
//	append.go          a whole transaction in one message: it is checked
//	queue.go           it waits for its turn
//	append_batch.go    its turn: it is judged, numbered and handed over with others
//	append_written.go  the appender's answer, and whose turn it is again
//	append_doubt.go    nobody knows whether it was written: the tail tells
//	append_repeat.go   it was written before: the log has the answer
//	lasts.go           last numbers, of each sequence and period
//	period.go          how sequences restart: current periods, closed ones, unknown ones
//	workspace.go       a kind with its sequences, a workspace with its last numbers
//	lookup.go          where last numbers are found, and in which order
//	nearly_used.go     which sequences end soon
//	pending.go         what is durable in the log and not stored yet
//	flight.go          how it is flushed
//	actualize.go       a new epoch is taken, and the tail of the log replayed
//	late.go            a Flush when its transaction is not open any more
//	stop.go            how a partition ends
package sequencer
