package ids

import "errors"

// Errors of ids and their generators.
var (
	// ErrID is returned when a number or a text is not an id.
	//
	// From: ParseTraceID, ParseDecimalID, the Validate, MarshalText and UnmarshalText methods of ids.
	// Do: correct the text. An id that an application has stored is damaged.
	ErrID = errors.New("not an id")
	// ErrTooFar is returned when the time in a trace id is further from now than allowed.
	//
	// From: TraceID.ValidateAt.
	// Do: refuse the id: it is too old, from a machine whose clock is wrong, or made up.
	ErrTooFar = errors.New("time of the trace id is too far from now")
	// ErrSecondUsedUp is returned when all trace ids of a second are given out, or the generator was made in this
	// second, and the context ends before the next one.
	//
	// From: TraceGenerator.Next.
	// Do: wait longer, or take fewer ids. If the clock was set back, it says by how much: the next id comes when the
	// clock has caught up.
	ErrSecondUsedUp = errors.New("trace ids of the second are used up")
	// ErrLaunch is returned when a launch number is not one of 1 to 99,999.
	//
	// From: NewDecimalGenerator, ValidateLaunch.
	// Do: correct what the deployment sets.
	ErrLaunch = errors.New("bad launch number")
	// ErrLaunchUsedUp is returned when all 99,999 generators of a launch are used up.
	//
	// From: NewDecimalGenerator, DecimalGenerator.Next.
	// Do: deploy with another launch number, which was never used with this store. A restored store wants one too.
	ErrLaunchUsedUp = errors.New("generators of the launch are used up")
	// ErrDomain is returned when a permutation is wanted of a number of bits that it can't have.
	//
	// From: NewPermutation.
	// Do: ask for 1 to 63 bits.
	ErrDomain = errors.New("bad domain of a permutation")
)
