package storagetest

import "errors"

var errUnanswered = errors.New("unanswered")
