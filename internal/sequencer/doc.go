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
// A number passes through these places, and is looked up in this order:
//
//	transaction   reserved: given to the open transaction, goes back if it fails
//	cache         last numbers of the workspaces used last, bounded
//	unflushed     durable in the log, not yet handed to the flusher
//	flight        in the flusher's hands
//	retired       flushed while a load was under way that may not have seen it
//	the store     read by a load
package sequencer
