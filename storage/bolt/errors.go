package bolt

import (
	"errors"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// ErrReadOnly is told where it is declared.
var ErrReadOnly = storage.ErrReadOnly

// Errors of opening and copying. Most of a store's errors are those of package storage.
var (
	// ErrExists is returned when a copy would go where there is something already: something else than an empty
	// directory, or one that cannot be replaced.
	//
	// From: Store.Backup, [Compact], [Restore].
	// Do: name another directory, or remove what is there.
	ErrExists = errors.New("there is something already")
	// ErrNoState is returned when a store is to be opened read-only and state.db is not there. The error is ErrNotFound
	// too.
	//
	// From: [Open] and [OpenExisting] with Options.ReadOnly.
	// Do: start the application on the store once, which rebuilds the file. [OpenLog] opens what is left.
	ErrNoState = errors.New("state.db is missing")
)

// What is wrong with files that do not belong together, as the cause of an error.
var (
	// errOtherLog says what is wrong with a state.db, and what to do about it.
	errOtherLog = errors.New("it was made from another log, perhaps of a copy of the store that has gone on by itself; without the file the next open rebuilds it")
	// errLostEnd says what is wrong with a log that is too short. What there is to do about it depends on
	// which of the two it is.
	errLostEnd = errors.New("it has lost its end, or " + format.StateFileName + " is of a longer copy of the store")
	// errOtherEvent says that two files have different events in one place.
	errOtherEvent = errors.New("the write-ahead log has another event there")
	// errOtherPositions says what is wrong with a position that rests on an event which the log has not, or
	// has differently, and what to do about it.
	errOtherPositions = errors.New("this log has lost its end or is an older one, or the position is of a copy of the store that has gone on by itself; " +
		"put the right file in place, or rewind or delete the subscription")
)

// What ends a transaction that would write nothing.
var (
	// errNothing: no change of a subscription is left.
	errNothing = errors.New("nothing to write")
	// errNothingAccepted: no flush is left.
	errNothingAccepted = errors.New("nothing to write")
)
