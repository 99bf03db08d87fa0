package bolt

import (
	"errors"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/copies"
	"github.com/partita-go/partita/storage/bolt/internal/files"
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
	ErrExists = copies.ErrExists
	// ErrNoState is returned when a store is to be opened read-only and state.db is not there. The error is ErrNotFound
	// too.
	//
	// From: [Open] and [OpenExisting] with Options.ReadOnly.
	// Do: start the application on the store once, which rebuilds the file. [OpenLog] opens what is left.
	ErrNoState = files.ErrNoState
)

// errNothing ends a transaction that would write nothing.
var errNothing = errors.New("nothing to write")

// errCutOff is why a flush is not finished that was under way when the store was closed, or killed.
var errCutOff = errors.New("a flush was cut off, and is not finished yet")
