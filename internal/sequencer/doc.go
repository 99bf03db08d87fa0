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
package sequencer
