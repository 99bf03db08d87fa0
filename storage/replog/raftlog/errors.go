package raftlog

import "errors"

// Errors of a log on Raft. Those of package replog belong to them too, [storage.ErrNotFound] where no log was created,
// [storage.ErrLocked] where it is open already, and [storage.ErrForeign] where it is another node's.
var (
	// ErrOptions is returned when options cannot be.
	//
	// From: raftlog.New, raftlog.Create and raftlog.Listen.
	// Do: correct them.
	ErrOptions = errors.New("wrong options of a log on several nodes")
	// ErrExists is returned when a log was to be created where one is, or where something else is.
	//
	// From: raftlog.Create.
	// Do: start the log that is there. To begin a new one, take another directory.
	ErrExists = errors.New("there is a log already")
	// ErrDisk is returned when a node could not write its log, or not read it. It is not tried again, since nobody knows
	// what a disk has after that.
	//
	// From: the leadership of a log, and what needs it.
	// Do: look at the disk, then start the log anew.
	ErrDisk = errors.New("the log's disk has failed")
	// ErrForgotten is returned when the other nodes know this one with another directory: it was made anew under its old
	// name, and does not know any more what it has promised them.
	//
	// From: the leadership of a log, and what needs it.
	// Do: put the old directory back; or remove the node from the log, and let it join under a new name.
	ErrForgotten = errors.New("other nodes know another directory of this node's name")
	// ErrMember is returned when a node cannot be added, since it is in the log; or not be removed, since it is not, or since
	// it owns the log.
	//
	// From: Add and Remove of a log.
	// Do: look at its members; hand the log over before the owner is removed.
	ErrMember = errors.New("wrong member of the log")
	// ErrAway is returned when a log was to be handed over to a node that has not answered the owner.
	//
	// From: Transfer of a log.
	// Do: wait until the node is back, or choose another one. The owner leads on.
	ErrAway = errors.New("the other node has not answered")
)

var (
	errClosing = errors.New("the log is being closed")
	errRefused = errors.New("the other node refuses the stream")
	// errLater answers a message with entries instead of which another one waits.
	errLater = errors.New("the replica takes no more for now")
)
