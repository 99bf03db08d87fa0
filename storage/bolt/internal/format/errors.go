package format

import (
	"errors"
	"fmt"
)

// Causes of damage.
var (
	ErrChecksum  = errors.New("checksum does not match")
	ErrTruncated = errors.New("value is too short")
	ErrLayout    = errors.New("value has a wrong layout")
	ErrVersion   = errors.New("value has an unknown version")
	ErrMisplaced = errors.New("value belongs to another key")
	ErrMissing   = errors.New("value is missing")
)

// ErrNewer is [ErrVersion] of what a newer program has written.
var ErrNewer = fmt.Errorf("%w, a newer one", ErrVersion)

// unknownVersion says that a version is none of those from first to last.
func unknownVersion(got, first, last byte) error {
	cause := ErrVersion
	if got > last {
		cause = ErrNewer
	}
	return fmt.Errorf("%w: got %d, want %d to %d", cause, got, first, last)
}
