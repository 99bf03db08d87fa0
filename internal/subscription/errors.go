package subscription

import "errors"

// ErrNotHeld is returned when a lane is asked for what only one that is held does, or is
// released before it could be held.
var ErrNotHeld = errors.New("lane is not held")
