package replog

import "errors"

// Errors of a log that several nodes keep together. [messages.ErrOutcomeUnknown] and [storage.ErrClosed] belong to them too.
var (
	// ErrNotOwner is returned when this node does not own the log, or not any more. Nothing was written.
	//
	// From: Append and Verify of a log, and all that leads to them.
	// Do: ask the owner, which the log's leadership names.
	ErrNotOwner = errors.New("this node does not own the log")
	// ErrMoved is returned when an entry was to be written behind a head that is not the head any more. Nothing was written,
	// and nothing will be.
	//
	// From: Append of a log, and all that leads to it.
	// Do: look at what was written meanwhile, and decide anew.
	ErrMoved = errors.New("the log has moved on")
	// ErrTooLarge is returned when an entry is larger than [MaxEntry]. Nothing was written.
	//
	// From: Append of a log, and all that leads to it.
	// Do: write less at once.
	ErrTooLarge = errors.New("entry of the log is too large")
	// ErrDiverged is returned when an entry is not what was written, or does not stand behind those that this replica has:
	// this replica is not like the others, and stops.
	//
	// From: the leadership of a log, and all that needs its replica.
	// Do: make the replica anew from another one.
	ErrDiverged = errors.New("replica differs from the log")
	// ErrNewer is returned when an entry, or what it says, is of a version that this program does not know: a newer one has
	// written it. This replica stops, and has lost nothing.
	//
	// From: the leadership of a log, and all that needs its replica.
	// Do: start this node with the program that the others have.
	ErrNewer = errors.New("entry of the log is of a newer version than this program knows")
	// ErrBehind is returned when the log does not have the entries any more that a replica lacks.
	//
	// From: Start of a log, and its leadership.
	// Do: make the replica anew from another one.
	ErrBehind = errors.New("replica is too far behind the log")
	// ErrAhead is returned when a replica has entries that this node's log does not have: the disk has lost what was
	// synced, or the directory is a copy.
	//
	// From: Start of a log.
	// Do: let the node join as a new one; under its old name it could give away what it has promised.
	ErrAhead = errors.New("replica is ahead of the log")
)
