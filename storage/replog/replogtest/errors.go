package replogtest

import "errors"

// Errors of the suite's replicas.
var errOrder = errors.New("replica was given an entry out of order")
