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
)

var (
	errClosing = errors.New("the log is being closed")
	errRefused = errors.New("the other node refuses the stream")
)
