package bolt

import (
	"errors"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/copies"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/intake"
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
	// ErrOtherImport is returned when an import would go on with one that was cut off, and that is of other events.
	//
	// From: [Import].
	// Do: give it the events of that import, or delete the directory that the error names, to begin anew.
	ErrOtherImport = intake.ErrOther
	// ErrStream is returned when what is read is no whole backup: it was cut off or changed on its way, or is something
	// else.
	//
	// From: [ReadBackup], [ReadSeed].
	// Do: make the backup again. Nothing was kept of it.
	ErrStream = copies.ErrStream
	// ErrReplica is returned when a store that is a replica is to be opened for writing by itself: what it wrote would not be
	// in the others; or when a store that is none is to be copied as one.
	//
	// From: [Open] and [OpenExisting] without Options.Log, and [Compact]; Store.WriteSeed with a store that has no log.
	// Do: open it with its replicated log, or read-only. A backup of it is a store by itself.
	ErrReplica = errors.New("store is a replica")
	// ErrOvertaken is returned when events come to a replica faster than a seed of it is read: that would not end.
	//
	// From: Store.WriteSeed.
	// Do: again when less is written, or over a faster link.
	ErrOvertaken = copies.ErrOvertaken
	// ErrPart is returned when a part of a store is asked for that it has not.
	//
	// From: Store.ByTime, Store.CountEvents.
	// Do: name partitions or workspaces, not both. Each partition must be one of the application's.
	ErrPart = errors.New("wrong part of a store")
)

// errCutOff is why a flush is not finished that was under way when the store was closed, or killed.
var errCutOff = errors.New("a flush was cut off, and is not finished yet")
