package format

import "errors"

// Causes of damage.
var (
	ErrChecksum  = errors.New("checksum does not match")
	ErrTruncated = errors.New("value is too short")
	ErrLayout    = errors.New("value has a wrong layout")
	ErrVersion   = errors.New("value has an unknown version")
	ErrMisplaced = errors.New("value belongs to another key")
	ErrMissing   = errors.New("value is missing")
)
