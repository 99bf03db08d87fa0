package spans

import "errors"

// Why a span has ended without an answer: they are its status, and nobody else's.
var (
	errWithdrawn = errors.New("the caller does not wait any more")
	errGone      = errors.New("it has ended without an answer")
)
