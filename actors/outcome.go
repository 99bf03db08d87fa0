package actors

import (
	"context"
	"errors"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// outcomeOf says what a leaf's storage error means to its partition, and which
// event it is about.
func outcomeOf(err error) (messages.Outcome, messages.PLogOffset) {
	switch {
	case err == nil:
		return messages.Done, 0
	case errors.Is(err, storage.ErrCheckpoint), errors.Is(err, storage.ErrNumbers):
		return messages.Diverged, 0
	case isBroken(err):
		return messages.Broken, offsetIn(err)
	}
	return messages.Retry, 0
}

// isBroken reports whether trying again is of no use before somebody repairs the
// store, opens it anew, or decides who owns the partition.
func isBroken(err error) bool {
	for _, broken := range []error{
		storage.ErrConflict, storage.ErrDamaged, storage.ErrClosed, storage.ErrReadOnly, storage.ErrInvalidEvent, messages.ErrFenced,
	} {
		if errors.Is(err, broken) {
			return true
		}
	}
	return false
}

// offsetIn returns the event that an error names, 0 if it names none.
func offsetIn(err error) messages.PLogOffset {
	if damaged, ok := errors.AsType[*storage.DamagedError](err); ok {
		return damaged.PLogOffset
	}
	if conflict, ok := errors.AsType[*storage.ConflictError](err); ok {
		return conflict.PLogOffset
	}
	return 0
}

// nothingWritten reports whether a failed append has surely left nothing while
// the partition's numbers are still those of the log, so that they can go back.
func nothingWritten(err error) bool {
	if errors.Is(err, messages.ErrOutcomeUnknown) {
		return false
	}
	if conflict, ok := errors.AsType[*storage.ConflictError](err); ok {
		return conflict.Place == storage.PlaceWLog || conflict.Place == storage.PlaceRecord
	}
	return isContextError(err) || errors.Is(err, storage.ErrDuplicate) ||
		errors.Is(err, storage.ErrInvalidEvent) || errors.Is(err, storage.ErrTailFull) || errors.Is(err, storage.ErrFull) ||
		errors.Is(err, storage.ErrForeign)
}

// isContextError reports whether a write was not handed over because its context
// had ended.
func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
