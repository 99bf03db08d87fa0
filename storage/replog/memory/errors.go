package memory

import "errors"

// Errors of who leads.
var errNoQuorum = errors.New("no majority of the nodes is there")
