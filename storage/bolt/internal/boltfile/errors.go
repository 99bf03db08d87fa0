package boltfile

import "errors"

// errPage ends the check of a page and those below it: it is told already.
var errPage = errors.New("page is at fault")
