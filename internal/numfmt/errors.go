package numfmt

import "errors"

var (
	// ErrPattern is returned when a pattern does not tell every number of every period apart, or is none; and when
	// two formats of a list could read the same text differently. It says at which byte, counted from 0, the pattern
	// is wrong, what is there, and what is wanted.
	ErrPattern = errors.New("bad format of numbers")
	// ErrText is returned when no number is printed as the text.
	ErrText = errors.New("not a number of that format")
)
