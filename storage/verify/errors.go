package verify

import "errors"

// Errors of checking a store.
var (
	// ErrFaults is returned when a check has found faults.
	//
	// From: [Report.Err].
	// Do: what `partita verify` tells with each fault; operating.md has a table of the repairs.
	ErrFaults = errors.New("store violates its invariants")
	// ErrNotAtRest is returned when a partition was written while it was checked: what was found may be faults, or only
	// differences between two moments. Not each write is noticed: a flush that is written and not published yet is not.
	//
	// From: [Run].
	// Do: check again while nobody writes.
	ErrNotAtRest = errors.New("store was written while it was checked")

	// errEnough ends a reading that has seen what it wanted.
	errEnough = errors.New("seen enough")
)
